"""`earmark simulate`: exit status and what is printed."""

import json
from pathlib import Path

import pytest

from earmark.simulation.cli import simulate
from support.simulation_player import OWN

SCENARIO = """\
apiVersion: earmark.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  objects:
  - apiVersion: v1
    kind: Node
    metadata: {name: n1}
    status: {allocatable: {cpu: '2', memory: 4Gi, pods: '10'}, conditions: [{type: Ready, status: 'True'}]}
  timeline:
  - at: 1s
    apply:
    - apiVersion: v1
      kind: Pod
      metadata: {name: p}
      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
"""


def write(directory: Path, more: str = "") -> Path:
    path = directory / "small.yaml"
    path.write_text(SCENARIO + more, encoding="utf-8")
    return path


def run(path: Path, *, as_json: bool = False, quiet: bool = False) -> int:
    return simulate([path], seed=1, as_json=as_json, quiet=quiet)


def test_a_scenario_that_holds_is_status_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(write(tmp_path, "  - {at: 2s, expect: {pods: {p: {node: n1, phase: Running}}}}\n")) == 0
    shown = capsys.readouterr().out
    assert "passed small" in shown
    assert "p is bound to n1" in shown
    assert "1 scenario played, all held" in shown


def test_an_expectation_that_does_not_hold_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(write(tmp_path, "  - {at: 2s, expect: {pods: {p: {node: null}}}}\n"), quiet=True) == 1
    shown = capsys.readouterr().out
    assert "pods.p.node" in shown
    assert "want null" in shown
    assert 'got  "n1"' in shown


def test_a_file_that_cannot_be_used_is_status_2_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "  - {at: soon, stop: nodes}\n")
    assert run(path) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"error: {path}:17: spec.timeline[1].at: 'soon' is not a duration")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("delete: {kind: Pod, name: nobody}", 'pods "nobody" not found'),
        ("start: nodes", "nodes runs already"),
        ("patch: {kind: Pod, name: p, merge: {spec: {nodeName: x, colour: red}}}", "spec"),
        ("apply: [{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {containers: []}}]", "spec.containers"),
        ("attach: {claim: none, condition: c}", "there is no claim none"),
    ],
)
def test_a_step_that_the_cluster_refuses_is_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], step: str, problem: str
) -> None:
    assert run(write(tmp_path, f"  - {{at: 2s, {step}}}\n")) == 2
    told = capsys.readouterr().err
    assert "small.yaml:17: spec.timeline[1]" in told
    assert problem in told


def test_deleting_what_has_gone_meanwhile_is_no_error(tmp_path: Path) -> None:
    twice = "  - {at: 2s, delete: {kind: Pod, name: p}}\n  - {at: 5m, delete: {kind: Pod, name: p}}\n"
    assert run(write(tmp_path, twice)) == 0


def test_json_has_the_fields_of_the_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(OWN / "window.yaml", as_json=True) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    window = lines[0]
    assert list(window) == [
        "scenario", "ok", "seed", "failures", "violations", "evicted", "evictions", "pods", "settlements", "log",
    ]  # fmt: skip
    assert (window["scenario"], window["ok"], window["seed"]) == ("window", True, 1)
    assert (window["evicted"], window["evictions"]) == (["tenant"], 1)
    assert window["pods"]["guest"]["node"] == "east"
    assert window["pods"]["guest"]["devices"] == ["east/a0"]
    (settlement,) = window["settlements"]
    assert settlement["preemptor"] == "guest"
    assert settlement["victims"] == ["tenant"]
    assert [settlement[moment] for moment in ("t0", "t1", "t3", "t4")] == [20, 28, 38, 38]
    assert all({"at", "service", "event"} <= set(entry) for entry in window["log"])


def test_a_failure_in_json_says_when_where_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(write(tmp_path, "  - {at: 2500ms, expect: {evictions: [1, 2]}}\n"), as_json=True) == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert failure == {"at": 2.5, "path": "evictions", "want": [1, 2], "got": 0}
