"""The what-if form: what it takes, and how the dry run's answer is put."""

from __future__ import annotations

import pytest

from earmark.v1 import common_pb2, framework_pb2, preemption_pb2
from earmark.web.queueing import SHOWN, queue_data
from earmark.web.whatif import BadManifest, answer_data, pod_manifest, priority_class

POD = "kind: Pod\nmetadata: {name: x}\nspec: {priorityClassName: urgent}\n"


def reference(name: str) -> common_pb2.PodReference:
    return common_pb2.PodReference(namespace="default", name=name, uid=f"uid-{name}")


def test_a_pod_in_yaml_or_json_is_taken() -> None:
    assert pod_manifest(POD)["metadata"] == {"name": "x"}
    assert pod_manifest('{"kind": "Pod", "metadata": {}, "spec": {}}')["kind"] == "Pod"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "want one pod, found 0 documents"),
        (f"{POD}---\n{POD}", "want one pod, found 2 documents"),
        ("kind: Node\nmetadata: {}\n", "kind: want Pod, found Node"),
        ("- 1", "kind: want Pod, found list"),
        ("kind: Pod\nmetadata: {}\n", "spec: want an object"),
        ("a: [", "not valid YAML"),
        ("[" * 5000, "not valid YAML"),
        ("!!python/object/apply:os.system [true]", "not valid YAML"),
    ],
)
def test_what_is_no_pod_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(BadManifest, match="(?s)^" + said.replace("[", r"\[")) as caught:
        pod_manifest(text)
    assert "\n" not in str(caught.value)


def test_the_priority_class_counts_where_the_manifest_has_no_value() -> None:
    assert priority_class(pod_manifest(POD)) == "urgent"
    assert priority_class(pod_manifest("kind: Pod\nmetadata: {}\nspec: {priority: 0, priorityClassName: urgent}")) == ""
    assert priority_class(pod_manifest("kind: Pod\nmetadata: {}\nspec: {}")) == ""


def test_the_answer_names_victims_with_their_devices_and_the_alternatives() -> None:
    chosen = preemption_pb2.CandidateResult(node_name="a", victims=[reference("train")], highest_victim_priority=5)
    other = preemption_pb2.CandidateResult(
        node_name="b", victims=[reference("one"), reference("two")], pdb_violations=1
    )
    answer = preemption_pb2.DryRunResponse(chosen=chosen, candidates=[chosen, other])
    data = answer_data(answer, lambda uid: ["d/a/gpu-0"] if uid == "uid-train" else [])
    assert data["summary"] == "It would preempt 1 pod on node a."
    assert data["chosen"] == {
        "node": "a",
        "victims": [{"name": "default/train", "devices": ["d/a/gpu-0"]}],
        "budgets": 0,
        "priority": 5,
    }
    assert [item["node"] for item in data["alternatives"]] == ["b"]  # type: ignore[attr-defined]


def test_a_pod_that_fits_preempts_nobody() -> None:
    data = answer_data(preemption_pb2.DryRunResponse(fits_on="b"), lambda uid: [])
    assert (data["summary"], data["chosen"]) == ("It fits on node b; nobody has to go.", None)


def test_a_pod_that_stays_pending_says_why_per_node() -> None:
    status = common_pb2.Status(reasons=["No preemption victims found for incoming pod"])
    reason = framework_pb2.NodeReason(nodes=[f"n{number}" for number in range(10)], preemption=status)
    data = answer_data(preemption_pb2.DryRunResponse(node_reasons=[reason]), lambda uid: [])
    assert str(data["summary"]).startswith("It would stay pending")
    assert data["reasons"] == [
        {"nodes": "n0, n1, n2, n3, n4, n5, n6, n7 and 2 more", "text": "No preemption victims found for incoming pod"}
    ]


def test_the_queue_shows_the_most_important_pods_and_counts_the_rest() -> None:
    pods = [framework_pb2.QueuedPod(pod=reference(f"p{number}"), priority=number) for number in range(SHOWN + 3)]
    data = queue_data(pods)
    assert data["more"] == 3
    assert [row["priority"] for row in data["rows"]][:2] == [SHOWN + 2, SHOWN + 1]  # type: ignore[attr-defined]
