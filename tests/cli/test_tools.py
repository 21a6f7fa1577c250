"""`earmark allocate` and `earmark cel`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from earmark.cli.main import main

PROBLEM: dict[str, Any] = {
    "id": "one",
    "node": {"metadata": {"name": "n1"}},
    "classes": [{"metadata": {"name": "gpu"}, "spec": {}}],
    "slices": [
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n1",
                "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            },
        }
    ],
    "claims": [
        {
            "metadata": {"name": "c", "namespace": "default", "uid": "u"},
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "gpu",
                            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                        }
                    ]
                }
            },
        }
    ],
}


def earmark(*arguments: str, monkeypatch: pytest.MonkeyPatch, stdin: str = "") -> int:
    monkeypatch.setattr(sys, "argv", ["earmark", *arguments])
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    with pytest.raises(SystemExit) as caught:
        main()
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_allocate_answers_each_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = json.dumps(PROBLEM) + "\n\n" + json.dumps({**PROBLEM, "id": "two", "slices": []}) + "\n"
    assert earmark("allocate", "-", monkeypatch=monkeypatch, stdin=stdin) == 0
    one, two = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert one["id"] == "one"
    assert one["results"][0]["devices"]["results"][0]["device"] == "gpu-0"
    assert (two["id"], two["results"]) == ("two", None)


def test_each_line_that_is_no_problem_is_named_and_the_others_are_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = "\n".join(["x", json.dumps(PROBLEM), "[1]", '{"id": 7}'])
    assert earmark("allocate", monkeypatch=monkeypatch, stdin=stdin) == 2
    said = capsys.readouterr()
    first, second = said.err.splitlines()
    assert first.startswith("earmark: stdin:1: not valid JSON: ")
    assert second == "earmark: stdin:3: want a JSON object, found a list"
    good, bad = [json.loads(line) for line in said.out.splitlines()]
    assert good["id"] == "one"
    assert (bad["id"], bad["results"], bad["error_kind"]) == (7, None, "input")


def test_fields_that_are_wrong_are_named_by_their_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: dict[str, Any] = json.loads(json.dumps(PROBLEM))
    broken["slices"][0]["spec"]["devices"][0]["name"] = 5
    unknown = {**PROBLEM, "features": ["NoSuchThing"]}
    stdin = f"{json.dumps(broken)}\n{json.dumps(unknown)}"
    assert earmark("allocate", monkeypatch=monkeypatch, stdin=stdin) == 0
    one, two = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert one["error_kind"] == two["error_kind"] == "input"
    assert "slices[0].spec.devices[0].name" in one["error"]
    assert "unknown feature 'NoSuchThing'" in two["error"]


def test_share_ids_are_fresh_or_fixed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shareable: dict[str, Any] = json.loads(json.dumps(PROBLEM))
    shareable["slices"][0]["spec"]["devices"][0]["allowMultipleAllocations"] = True
    file = tmp_path / "problems.jsonl"
    file.write_text(f"{json.dumps(shareable)}\n" * 2)

    def share_ids(*options: str) -> list[str]:
        assert earmark("allocate", *options, str(file), monkeypatch=monkeypatch) == 0
        answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return [answer["results"][0]["devices"]["results"][0]["shareID"] for answer in answers]

    assert share_ids("--fixed-share-ids") == ["aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"] * 2
    assert len(set(share_ids())) == 2


def test_a_file_that_is_not_there_is_bad_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert earmark("allocate", "no-such-file", monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err.startswith("earmark: no-such-file: ")


def test_a_search_ends_at_the_lines_deadline(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subset sums over counters that all differ: nothing but time ends this."""
    amounts = [1000 + 7 * k * k for k in range(40)]
    hard: dict[str, Any] = json.loads(json.dumps(PROBLEM))
    base = {**hard["slices"][0]["spec"], "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2}}
    devices = [
        {"name": f"d{k}", "consumesCounters": [{"counterSet": "cs", "counters": {
            "a": {"value": str(amount)}, "b": {"value": str(9000 - amount)}}}]}
        for k, amount in enumerate(amounts)
    ]  # fmt: skip
    middle = sum(amounts) // 2
    counters = {"a": {"value": str(middle)}, "b": {"value": str(20 * 9000 - middle)}}
    hard["slices"] = [
        {"metadata": {"name": "s"}, "spec": {**base, "devices": devices}},
        {"metadata": {"name": "t"}, "spec": {**{k: v for k, v in base.items() if k != "devices"},
                                             "sharedCounters": [{"name": "cs", "counters": counters}]}},
    ]  # fmt: skip
    hard["claims"][0]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 20
    hard["timeout_ms"] = 100
    assert earmark("allocate", monkeypatch=monkeypatch, stdin=json.dumps(hard)) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["results"], answer["error_kind"]) == (None, "timeout")


@pytest.mark.parametrize(
    ("expression", "status", "text"),
    [
        ('device.driver == "gpu.example.com"', 0, "gpu.example.com/gpu-a/gpu-0: matches"),
        ('device.driver == "other"', 1, 'false: device.driver == "other"'),
    ],
)
def test_cel_says_which_devices_match_and_why_not(
    expression: str,
    status: int,
    text: str,
    repository: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slices = repository / "examples/gpu-cluster/cluster/20-node-a.yaml"
    assert earmark("cel", expression, "--slices", str(slices), monkeypatch=monkeypatch) == status
    assert text in capsys.readouterr().out


def test_cel_names_devices_together_of_which_the_same_is_to_be_said(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slices = repository / "examples/devices/h100.yaml"
    expression = 'device.attributes["gpu.nvidia.com"].type == "gpu"'
    assert earmark("cel", expression, "--slices", str(slices), monkeypatch=monkeypatch) == 0
    out = capsys.readouterr().out
    assert "gpu.nvidia.com/node-a/gpu-0: matches\n  so do: gpu-1\n" in out
    assert out.count("does not match") == out.count("  false: ") == 1
    assert out.endswith("\n2 of 52 devices match\n")


def test_cel_answers_json_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"expression": "true", "device": {"driver": "a", "attributes": {}, "capacity": {}}})
    assert earmark("cel", "-", monkeypatch=monkeypatch, stdin=line + "\n") == 0
    assert json.loads(capsys.readouterr().out)["expect"] == {"result": True}


@pytest.mark.parametrize("arguments", [["cel", "device.driver ==", "--slices", "-"], ["cel", "true"]])
def test_cel_that_cannot_be_used_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert earmark(*arguments, monkeypatch=monkeypatch) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "missing"
    assert earmark("allocate", str(missing), monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == f"earmark: {missing}: No such file or directory\n"


def test_apply_refuses_a_file_without_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("# nothing yet\n", encoding="utf-8")
    assert earmark("apply", "-f", str(empty), monkeypatch=monkeypatch) == 2
    assert capsys.readouterr().err == f"earmark: {empty}: nothing to apply, no object in it\n"
