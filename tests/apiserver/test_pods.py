"""Pods in the registry: defaults, priority, binding, deletion, and what may change."""

from __future__ import annotations

from typing import Any

import pytest

from earmark.apiserver.errors import StatusError
from earmark.kube.api import PatchType
from support.apiserver_registry import Cluster, causes, pod


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def priority_class(name: str, value: int, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **more,
    }  # fmt: skip


def test_a_pod_gets_kubernetes_defaults(cluster: Cluster) -> None:
    made = cluster.create(pod("a"))
    spec = made["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["priority"] == 0
    assert spec["preemptionPolicy"] == "PreemptLowerPriority"
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


def test_requests_are_taken_from_limits(cluster: Cluster) -> None:
    data = pod("a")
    data["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 2, "memory": "1.5Gi"}, "requests": {"cpu": "1000m"}}
    resources = cluster.create(data)["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "2", "memory": "1536Mi"}, "requests": {"cpu": "1", "memory": "1536Mi"}}


@pytest.mark.parametrize(
    ("resources", "want"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}, "Burstable"),
    ],
)
def test_the_qos_class_follows_cpu_and_memory(cluster: Cluster, resources: dict[str, Any], want: str) -> None:
    data = pod("a")
    data["spec"]["containers"][0]["resources"] = resources
    assert cluster.create(data)["status"]["qosClass"] == want


def test_the_priority_comes_from_the_class(cluster: Cluster) -> None:
    cluster.create(priority_class("high", 1000, preemptionPolicy="Never"))
    spec = cluster.create(pod("a", priorityClassName="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    assert cluster.create(pod("s", priorityClassName="system-node-critical"))["spec"]["priority"] == 2_000_001_000


def test_the_default_class_counts_where_none_is_named(cluster: Cluster) -> None:
    cluster.create(priority_class("usual", 7, globalDefault=True))
    spec = cluster.create(pod("a"))["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (7, "usual")


def test_an_unknown_class_is_forbidden(cluster: Cluster) -> None:
    with pytest.raises(StatusError, match="no PriorityClass with name nope was found") as caught:
        cluster.create(pod("a", priorityClassName="nope"))
    assert caught.value.code == 403


def test_a_priority_that_is_not_the_class_s_is_forbidden(cluster: Cluster) -> None:
    with pytest.raises(StatusError, match=r"the integer value of priority \(5\) must not be provided"):
        cluster.create(pod("a", priority=5))


@pytest.mark.parametrize(
    ("change", "field", "kind"),
    [
        ({"containers": []}, "spec.containers", "Required"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy", "NotSupported"),
        ({"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator", "Invalid"),
        ({"tolerations": [{"key": "a", "effect": "Nope"}]}, "spec.tolerations[0].effect", "NotSupported"),
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims[0]", "Invalid"),
        ({"nodeSelector": {"not a key": "x"}}, "spec.nodeSelector", "Invalid"),
        ({"terminationGracePeriodSeconds": -1}, "spec.terminationGracePeriodSeconds", "Invalid"),
        ({"containers": [{"name": "Main", "image": "x"}]}, "spec.containers[0].name", "Invalid"),
        ({"containers": [{"name": "main"}]}, "spec.containers[0].image", "Required"),
        (
            {"containers": [{"name": "m", "image": "x", "resources": {"claims": [{"name": "gpu"}]}}]},
            "spec.containers[0].resources.claims[0].name",
            "NotFound",
        ),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            "Required",
        ),
    ],
)  # fmt: skip
def test_an_invalid_pod_is_refused_with_the_field(
    cluster: Cluster, change: dict[str, Any], field: str, kind: str
) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.create(pod("a", **change))
    assert caught.value.code == 422
    assert (field, kind) in causes(caught.value)


def test_a_pod_s_spec_cannot_be_changed(cluster: Cluster) -> None:
    data = cluster.create(pod("a"))
    data["spec"]["priority"] = 1
    with pytest.raises(StatusError) as caught:
        cluster.update(data)
    assert causes(caught.value) == [("spec", "Forbidden")]


def test_image_tolerations_and_gates_may_change(cluster: Cluster) -> None:
    data = cluster.create(pod("a", schedulingGates=[{"name": "wait"}]))
    assert data["status"]["conditions"][0]["reason"] == "SchedulingGated"
    data["spec"]["containers"][0]["image"] = "other:2"
    data["spec"]["tolerations"] = [{"key": "x", "operator": "Exists"}]
    del data["spec"]["schedulingGates"]
    changed = cluster.update(data)
    assert changed["metadata"]["generation"] == 2
    changed["spec"]["tolerations"] = []
    with pytest.raises(StatusError, match="existing toleration can not be modified"):
        cluster.update(changed)


def test_binding_sets_the_node_and_the_condition(cluster: Cluster) -> None:
    uid = cluster.create(pod("a"))["metadata"]["uid"]
    cluster.patch("Pod", "a", {"status": {"nominatedNodeName": "n1"}}, "status")
    cluster.bind("a", "n1", uid)
    bound = cluster.get("Pod", "a")
    assert bound["spec"]["nodeName"] == "n1"
    assert "nominatedNodeName" not in bound["status"]
    assert [(item["type"], item["status"]) for item in bound["status"]["conditions"]] == [("PodScheduled", "True")]


def test_binding_keeps_its_preconditions(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    with pytest.raises(StatusError, match="Precondition failed: UID") as caught:
        cluster.bind("a", "n1", "another")
    assert caught.value.code == 409
    cluster.bind("a", "n1")
    with pytest.raises(StatusError, match='pod a is already assigned to node "n1"') as caught:
        cluster.bind("a", "n2")
    assert caught.value.code == 409


def test_binding_a_gated_or_deleted_pod_conflicts(cluster: Cluster) -> None:
    cluster.create(pod("gated", schedulingGates=[{"name": "wait"}]))
    with pytest.raises(StatusError, match=r"non-empty \.spec\.schedulingGates"):
        cluster.bind("gated", "n1")
    data = pod("going")
    data["metadata"]["finalizers"] = ["example.com/keep"]
    cluster.create(data)
    cluster.delete("Pod", "going")
    with pytest.raises(StatusError, match="is being deleted"):
        cluster.bind("going", "n1")


def test_a_bound_pod_terminates_for_its_grace_period(cluster: Cluster) -> None:
    cluster.create(pod("a", terminationGracePeriodSeconds=10))
    cluster.bind("a", "n1")
    assert not cluster.delete("Pod", "a")
    meta = cluster.get("Pod", "a")["metadata"]
    assert meta["deletionTimestamp"] == "2026-01-01T00:00:10Z"
    assert meta["deletionGracePeriodSeconds"] == 10
    # The kubelet's last word.
    assert cluster.delete("Pod", "a", grace_seconds=0)
    assert not cluster.exists("Pod", "a")


def test_a_terminating_pod_can_be_written_and_stays(cluster: Cluster) -> None:
    cluster.create(pod("a", nodeName="n1"))
    cluster.delete("Pod", "a")
    cluster.patch("Pod", "a", {"status": {"phase": "Running"}}, "status")
    cluster.patch("Pod", "a", {"metadata": {"labels": {"x": "y"}}})
    assert "deletionTimestamp" in cluster.get("Pod", "a")["metadata"]


def test_a_shorter_grace_period_wins_and_a_longer_one_does_not(cluster: Cluster) -> None:
    cluster.create(pod("a", nodeName="n1"))
    cluster.delete("Pod", "a", grace_seconds=20)
    cluster.delete("Pod", "a", grace_seconds=60)
    assert cluster.get("Pod", "a")["metadata"]["deletionGracePeriodSeconds"] == 20
    cluster.delete("Pod", "a", grace_seconds=5)
    meta = cluster.get("Pod", "a")["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["deletionTimestamp"]) == (5, "2026-01-01T00:00:05Z")


def test_unbound_and_finished_pods_go_at_once(cluster: Cluster) -> None:
    cluster.create(pod("pending"))
    assert cluster.delete("Pod", "pending")
    cluster.create(pod("done", nodeName="n1"))
    cluster.patch("Pod", "done", {"status": {"phase": "Succeeded"}}, "status")
    assert cluster.delete("Pod", "done")


def test_a_wrong_uid_does_not_delete(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    with pytest.raises(StatusError) as caught:
        cluster.delete("Pod", "a", uid="another")
    assert caught.value.code == 409
    assert cluster.exists("Pod", "a")


def test_one_status_patch_stores_nomination_condition_and_annotation(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    patch = {
        "metadata": {"annotations": {"earmark.dev/nomination": "{}"}},
        "status": {
            "nominatedNodeName": "n1",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
        },
    }
    changed = cluster.patch("Pod", "a", patch, "status", PatchType.STRATEGIC)
    assert changed["metadata"]["annotations"] == {"earmark.dev/nomination": "{}"}
    assert changed["status"]["nominatedNodeName"] == "n1"
    assert changed["status"]["phase"] == "Pending"


def test_conditions_merge_by_type(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    for kind in ("PodScheduled", "DisruptionTarget"):
        cluster.patch(
            "Pod", "a", {"status": {"conditions": [{"type": kind, "status": "True"}]}}, "status", PatchType.STRATEGIC
        )
    assert [item["type"] for item in cluster.get("Pod", "a")["status"]["conditions"]] == [
        "PodScheduled", "DisruptionTarget",
    ]  # fmt: skip


def test_the_main_resource_does_not_change_the_status_nor_the_status_the_spec(cluster: Cluster) -> None:
    data = cluster.create(pod("a"))
    version = data["metadata"]["resourceVersion"]
    data["status"]["phase"] = "Running"
    assert cluster.update(data)["status"]["phase"] == "Pending"
    changed = cluster.patch("Pod", "a", {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}, "status")
    assert "nodeName" not in changed["spec"]
    assert changed["status"]["phase"] == "Running"
    assert int(changed["metadata"]["resourceVersion"]) == int(version) + 1
