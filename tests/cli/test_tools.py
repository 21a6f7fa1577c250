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


def test_a_line_that_is_no_json_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert earmark("allocate", monkeypatch=monkeypatch, stdin="{}\nx\n") == 2
    assert capsys.readouterr().err.startswith("earmark: stdin:2: not valid JSON")


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
