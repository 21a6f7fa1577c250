"""The command line: statuses and one-line errors, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from earmark.cli.main import main


def earmark(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run the command in this process and return its status."""
    monkeypatch.setattr(sys, "argv", ["earmark", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert isinstance(caught.value.code, int)
    return caught.value.code


def test_version_names_project_and_python(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert earmark("version", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out.startswith("earmark 0.")


def manifest(name: str, **changes: str) -> str:
    head = {"apiVersion": "v1", "kind": "Node", **changes}
    return "".join(f"{key}: {value}\n" for key, value in head.items()) + f"metadata:\n  name: {name}\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (manifest("a") + "---\n" + manifest("b", kind="Gadget"), "m.yaml:6: kind: Gadget b: the kind is not served"),
        (manifest("a", apiVersion="v2"), "m.yaml:1: apiVersion: Node a: v2 is not served for this kind; v1 is"),
        ("kind: Node\n", "m.yaml:1: apiVersion: is missing or no text"),
        ("a: [1\nb: 2\n", "m.yaml:2: not valid YAML"),
        ("- 1\n", "m.yaml:1: an object is a mapping"),
    ],
)
def test_a_bad_manifest_ends_with_2_and_names_file_line_and_field(
    text: str, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.yaml").write_text(text)
    status = earmark("apply", "-f", str(tmp_path / "m.yaml"), "--state-dir", str(tmp_path), monkeypatch=monkeypatch)
    err = capsys.readouterr().err
    assert status == 2
    assert err.startswith(f"earmark: {tmp_path}/{error}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        (["get", "pods"], 1, "no kubeconfig; is earmark running?"),
        (["get", "queue"], 1, "framework does not answer at unix:"),
        (["get", "nominations"], 1, "dynamicresources does not answer at unix:"),
        (["delete", "gadget", "x"], 2, "'gadget' is no kind that is served"),
        (["apply", "-f", "/no/such.yaml"], 2, "/no/such.yaml: no such file or folder"),
        (["up", "--config", "/no/such.toml"], 2, "/no/such.toml: No such file or directory"),
        (["demo", "--manifests", "/no/such"], 2, "/no/such/cluster: missing"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str],
    status: int,
    error: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EARMARK_RUNTIME_STATE_DIR", str(tmp_path))
    assert earmark(*arguments, monkeypatch=monkeypatch) == status
    err = capsys.readouterr().err
    assert error in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["get"], ["get", "gadgets"], ["simulate"], ["no-such-command"], ["apply"]])
def test_a_wrong_command_line_ends_with_2_and_says_how(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert earmark(*arguments, monkeypatch=monkeypatch) == 2
    err = capsys.readouterr().err
    assert "Usage: earmark" in err
    assert "Error: " in err


def test_the_command_starts_without_what_it_does_not_need() -> None:
    program = "import sys, earmark.cli.main; print([m for m in ('grpc', 'yaml', 'msgspec', 'rich.table') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_a_kubeconfig_that_is_none_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kubeconfig").write_text("clusters: 7\n")
    monkeypatch.setenv("EARMARK_RUNTIME_STATE_DIR", str(tmp_path))
    assert earmark("get", "pods", monkeypatch=monkeypatch) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"earmark: {tmp_path}/kubeconfig: not a usable kubeconfig")
    assert err.count("\n") == 1
