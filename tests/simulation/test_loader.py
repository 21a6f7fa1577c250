"""Scenario files are read strictly: one clear error with file, line and field."""

from pathlib import Path

import pytest

from earmark.simulation.errors import ScenarioError
from earmark.simulation.loader import load_scenarios
from earmark.simulation.scenario import Scenario
from earmark.simulation.steps.expect import Expect
from earmark.simulation.steps.faults import Fail
from earmark.simulation.steps.objects import Apply, Delete, Patch
from earmark.simulation.steps.services import Restart

HEAD = """\
apiVersion: earmark.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
"""


def write(directory: Path, text: str, name: str = "s.yaml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def load(directory: Path, spec: str) -> Scenario:
    (scenario,) = load_scenarios(write(directory, HEAD + spec))
    return scenario


def refusal(directory: Path, text: str) -> ScenarioError:
    with pytest.raises(ScenarioError) as caught:
        load_scenarios(write(directory, text))
    return caught.value


def test_everything_a_scenario_says_is_read(tmp_path: Path) -> None:
    scenario = load(
        tmp_path,
        """\
  description: what happens
  featureGates: {DRAPreemption: true}
  delays: {deallocation: 1m30s, startup: 0s}
  objects:
  - {apiVersion: v1, kind: Node, metadata: {name: n1}}
  timeline:
  - {at: 5s, delete: {kind: Pod, name: p}}
  - {at: 0s, apply: [{apiVersion: v1, kind: Pod, metadata: {name: p}}]}
  - {at: 5s, restart: framework}
  - {at: end, expect: {evictions: 0}}
  - {at: 6s, patch: {kind: Pod, name: p, namespace: other, subresource: status, merge: {status: {phase: Failed}}}}
  - {at: 7s, fail: {verb: delete, kind: Pod, times: 2, status: 500}}
""",
    )
    assert scenario.name == "s"
    assert scenario.description == "what happens"
    assert scenario.feature_gates == {"DRAPreemption": True}
    assert scenario.delays.deallocation == 90
    assert [(manifest.kind, manifest.namespace, manifest.name) for manifest in scenario.objects] == [("Node", "", "n1")]
    assert [entry.at for entry in scenario.timeline] == [0, 5, 5, 6, 7, None]
    kinds = [type(entry.step) for entry in scenario.timeline]
    assert kinds == [Apply, Delete, Restart, Patch, Fail, Expect]


def test_a_namespaced_object_without_a_namespace_is_in_default(tmp_path: Path) -> None:
    scenario = load(tmp_path, "  objects: [{apiVersion: v1, kind: Pod, metadata: {name: p}}]\n  timeline: []\n")
    assert scenario.objects[0].namespace == "default"
    assert scenario.objects[0].data["metadata"]["namespace"] == "default"


def test_several_documents_are_several_scenarios(tmp_path: Path) -> None:
    text = f"{HEAD}  timeline: []\n---\n{HEAD.replace('name: s', 'name: t')}  timeline: []\n---\n"
    assert [scenario.name for scenario in load_scenarios(write(tmp_path, text))] == ["s", "t"]


def test_a_file_of_objects_is_taken_in_at_its_place(tmp_path: Path) -> None:
    write(
        tmp_path,
        "{apiVersion: v1, kind: Node, metadata: {name: b}}\n---\n"
        "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Node, metadata: {name: c}}]}\n",
        "other.yaml",
    )
    scenario = load(
        tmp_path,
        "  objects: [{apiVersion: v1, kind: Node, metadata: {name: a}}, {file: other.yaml}]\n  timeline: []\n",
    )
    assert [manifest.name for manifest in scenario.objects] == ["a", "b", "c"]


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    write(tmp_path, "apiVersion: v1\nkind: Node\nmetadata: {}\n", "other.yaml")
    error = refusal(tmp_path, f"{HEAD}  objects: [{{file: other.yaml}}]\n  timeline: []\n")
    assert error.file.endswith("other.yaml")
    assert (error.line, error.field) == (3, "metadata.name")


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "- file: other.yaml\n", "other.yaml")
    assert "too deeply" in refusal(tmp_path, f"{HEAD}  objects: [{{file: other.yaml}}]\n  timeline: []\n").problem


def test_timestamps_stay_text(tmp_path: Path) -> None:
    scenario = load(
        tmp_path,
        "  objects: [{apiVersion: v1, kind: Pod, metadata: {name: p}, status: {startTime: 2026-01-02T03:04:05Z}}]\n"
        "  timeline: []\n",
    )
    assert scenario.objects[0].data["status"]["startTime"] == "2026-01-02T03:04:05Z"


def test_merge_keys_work(tmp_path: Path) -> None:
    scenario = load(
        tmp_path,
        "  objects:\n  - &a {apiVersion: v1, kind: Node, metadata: {name: a}}\n  - {<<: *a, metadata: {name: b}}\n"
        "  timeline: []\n",
    )
    assert [manifest.name for manifest in scenario.objects] == ["a", "b"]


POD = "{apiVersion: v1, kind: Pod, metadata: {name: p}}"


@pytest.mark.parametrize(
    ("spec", "line", "field", "problem"),
    [
        ("  colour: red\n  timeline: []\n", 5, "spec.colour", "unknown field"),
        ("  objects: []\n", 4, "spec.timeline", "is missing"),
        ("  timeline: {}\n", 5, "spec.timeline", "must be a list"),
        ("  delays: {startup: fast}\n  timeline: []\n", 5, "spec.delays.startup", "is not a duration"),
        ("  delays: {startup: 5}\n  timeline: []\n", 5, "spec.delays.startup", "must be a duration"),
        ("  featureGates: {DRAPreemption: maybe}\n  timeline: []\n", 5, "spec.featureGates.DRAPreemption", "true or"),
        ("  timeline:\n  - at: 5s\n", 6, "spec.timeline[0]", "has no step"),
        ("  timeline:\n  - {at: 1s, stop: nodes, start: nodes}\n", 6, "spec.timeline[0]", "exactly one of"),
        ("  timeline:\n  - at: 1s\n    destroy: all\n", 7, "spec.timeline[0].destroy", "unknown field"),
        ("  timeline:\n  - stop: nodes\n", 6, "spec.timeline[0].at", "is missing"),
        ("  timeline:\n  - {at: -1s, stop: nodes}\n", 6, "spec.timeline[0].at", "is not a duration"),
        ("  timeline:\n  - {at: 1s, stop: kubelet}\n", 6, "spec.timeline[0].stop", "is not one of"),
        ("  timeline:\n  - {at: 1s, delete: {kind: Cat, name: p}}\n", 6, "spec.timeline[0].delete.kind", "not one of"),
        ("  timeline:\n  - {at: 1s, delete: {kind: Node, name: n, namespace: x}}\n", 6,
         "spec.timeline[0].delete.namespace", "Node has no namespace"),
        ("  timeline:\n  - {at: 1s, fail: {verb: delete, kind: Pod, times: 0, status: 403}}\n", 6,
         "spec.timeline[0].fail.times", "at least 1"),
        ("  timeline:\n  - {at: 1s, fail: {verb: delete, kind: Pod, times: 1, status: 200}}\n", 6,
         "spec.timeline[0].fail.status", "400 to 599"),
        ("  timeline:\n  - {at: 1s, apply: [{kind: Pod, metadata: {name: p}}]}\n", 6,
         "spec.timeline[0].apply[0].apiVersion", "is missing"),
        ("  timeline:\n  - {at: 1s, apply: [{apiVersion: v2, kind: Pod, metadata: {name: p}}]}\n", 6,
         "spec.timeline[0].apply[0].apiVersion", "'v2' is not one of v1"),
        ("  timeline:\n  - {at: 1s, expect: {pods: {p: {colour: red}}}}\n", 6,
         "spec.timeline[0].expect.pods.p.colour", "unknown field"),
        ("  timeline:\n  - {at: 1s, expect: {pods: {p: {message: '('}}}}\n", 6,
         "spec.timeline[0].expect.pods.p.message", "is no regular expression"),
        ("  timeline:\n  - {at: 1s, expect: {pods: {p: {node: []}}}}\n", 6,
         "spec.timeline[0].expect.pods.p.node", "at least one value"),
        ("  timeline:\n  - {at: 1s, expect: {evictions: many}}\n", 6,
         "spec.timeline[0].expect.evictions", "must be a whole number"),
        ("  timeline:\n  - {at: 1s, expect: {evicted: p}}\n", 6, "spec.timeline[0].expect.evicted", "must be a list"),
        ("  timeline:\n  - {at: 1s, expect: {claims: {c: {devices: [gpu-0]}}}}\n", 6,
         "spec.timeline[0].expect.claims.c.devices[0]", "POOL/DEVICE"),
        ("  timeline:\n  - {at: 1s, stop: nodes}\n  timeline: []\n", 7, "spec", "is there twice"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_line(tmp_path: Path, spec: str, line: int, field: str, problem: str) -> None:
    error = refusal(tmp_path, HEAD + spec)
    assert (error.line, error.field) == (line, field)
    assert problem in error.problem
    assert str(error).startswith(f"{tmp_path / 's.yaml'}:{line}: {field}: ")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no scenario"),
        ("- [\n", "not valid YAML"),
        ("kind: Pod\napiVersion: v1\n", "is not one of earmark.dev/v1alpha1"),
        ("[]\n", "must be a mapping"),
        ("a: &a [*a]\n", "too deep"),
        ("apiVersion: earmark.dev/v1alpha1\nkind: Scenario\n", "is missing"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert problem in refusal(tmp_path, text).problem


def test_a_missing_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"absent\.yaml: cannot be read: No such file"):
        load_scenarios(tmp_path / "absent.yaml")


def test_a_manifest_that_contains_itself_is_refused(tmp_path: Path) -> None:
    text = f"{HEAD}  objects:\n  - apiVersion: v1\n    kind: Node\n    metadata: &m {{name: a, labels: *m}}\n  timeline: []\n"
    assert "too deep" in refusal(tmp_path, text).problem


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="no UTF-8 text"):
        load_scenarios(path)


def test_an_unknown_feature_gate_is_refused_where_the_known_ones_are_given(tmp_path: Path) -> None:
    path = write(tmp_path, f"{HEAD}  featureGates: {{Dra: true}}\n  timeline: []\n")
    with pytest.raises(ScenarioError, match="known are DRAPreemption"):
        load_scenarios(path, known_gates={"DRAPreemption"})
