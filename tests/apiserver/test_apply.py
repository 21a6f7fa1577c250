"""Server-side apply: ownership, conflicts, what is removed with its last owner."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from earmark.apiserver.errors import StatusError
from earmark.apiserver.fieldsets import from_fields, leaves, to_fields
from earmark.apiserver.results import WriteOptions
from earmark.apiserver.schema import kubernetes
from earmark.kube.resources import BY_KIND
from support.apiserver_registry import Cluster, Data, as_data, pod


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def apply(cluster: Cluster, manager: str, data: Data, force: bool = False, subresource: str = "") -> Data:
    resource = BY_KIND[data["kind"]]
    written = cluster.registry.apply(
        resource, "default" if resource.namespaced else "", data["metadata"]["name"], copy.deepcopy(data),
        force=force, subresource=subresource, options=WriteOptions(manager=manager),
    )  # fmt: skip
    return as_data(written.body)


def node(labels: dict[str, str], **spec: Any) -> Data:
    data: Data = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}}
    return {**data, "spec": spec} if spec else data


def owners(data: Data) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in data["metadata"].get("managedFields", ())}


def test_an_apply_creates_and_owns(cluster: Cluster) -> None:
    made = apply(cluster, "a", node({"x": "1"}))
    assert made["metadata"]["labels"] == {"x": "1"}
    assert owners(made) == {"a": {"f:metadata": {"f:labels": {"f:x": {}}}}}
    assert made["metadata"]["managedFields"][0]["operation"] == "Apply"


def test_the_same_apply_again_changes_nothing(cluster: Cluster) -> None:
    made = apply(cluster, "a", node({"x": "1"}, unschedulable=True))
    cluster.clock.move(60)
    assert apply(cluster, "a", node({"x": "1"}, unschedulable=True)) == made


def test_what_its_only_owner_leaves_out_goes(cluster: Cluster) -> None:
    apply(cluster, "a", node({"x": "1", "y": "1"}))
    apply(cluster, "b", node({"y": "1", "z": "1"}))
    assert apply(cluster, "a", node({}))["metadata"]["labels"] == {"y": "1", "z": "1"}
    assert "labels" not in apply(cluster, "b", node({}))["metadata"]


def test_a_change_of_another_s_field_conflicts_and_can_be_forced(cluster: Cluster) -> None:
    apply(cluster, "a", node({"x": "1"}))
    with pytest.raises(StatusError, match=r'Apply failed with 1 conflict: conflict with "a" using v1: ') as caught:
        apply(cluster, "b", node({"x": "2"}))
    assert (caught.value.code, caught.value.causes[0].field) == (409, ".metadata.labels.x")
    forced = apply(cluster, "b", node({"x": "2"}), force=True)
    assert forced["metadata"]["labels"] == {"x": "2"}
    assert list(owners(forced)) == ["b"]


def test_the_same_value_is_shared(cluster: Cluster) -> None:
    apply(cluster, "a", node({"x": "1"}))
    assert sorted(owners(apply(cluster, "b", node({"x": "1"})))) == ["a", "b"]


def test_an_object_that_was_never_applied_belongs_to_what_was_before(cluster: Cluster) -> None:
    cluster.create(node({"x": "1"}))
    with pytest.raises(StatusError, match='conflict with "before-first-apply"'):
        apply(cluster, "a", node({"x": "2"}))
    assert sorted(owners(apply(cluster, "a", node({"y": "1"})))) == ["a", "before-first-apply"]


def test_an_update_takes_the_fields_it_changes(cluster: Cluster) -> None:
    apply(cluster, "a", node({"x": "1", "y": "1"}))
    changed = cluster.patch("Node", "n", {"metadata": {"labels": {"x": "2"}}}, manager="edit")
    assert owners(changed) == {
        "a": {"f:metadata": {"f:labels": {"f:y": {}}}},
        "edit": {"f:metadata": {"f:labels": {"f:x": {}}}},
    }
    with pytest.raises(StatusError, match='conflict with "edit"'):
        apply(cluster, "a", node({"x": "1", "y": "1"}))


def test_elements_of_keyed_lists_are_owned_one_by_one(cluster: Cluster) -> None:
    apply(cluster, "a", pod("p"))
    made: Data = {}
    for kind in ("A", "B"):
        data = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        status = {"conditions": [{"type": kind, "status": "True"}]}
        made = apply(cluster, kind, {**data, "status": status}, subresource="status")
    assert [item["type"] for item in made["status"]["conditions"]] == ["A", "B"]
    made = apply(cluster, "A", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, subresource="status")
    assert [item["type"] for item in made["status"]["conditions"]] == ["B"]


def test_the_status_is_not_the_main_resource_s_to_own(cluster: Cluster) -> None:
    made = apply(cluster, "a", {**pod("p"), "status": {"phase": "Running"}})
    assert made["status"]["phase"] == "Pending"
    assert "f:status" not in owners(made)["a"]


def test_ownership_can_be_reset(cluster: Cluster) -> None:
    apply(cluster, "a", node({"x": "1"}))
    assert owners(cluster.patch("Node", "n", {"metadata": {"managedFields": [{}]}})) == {}


def test_bad_applies_are_refused(cluster: Cluster) -> None:
    cases: list[tuple[Data, int]] = [
        ({**node({}), "metadata": {"name": "n", "managedFields": [{"manager": "x"}]}}, 400),
        ({**node({}), "metadata": {"name": "n", "uid": "u"}}, 409),
        ({**pod("p"), "spec": {"containers": [{"image": "x"}]}}, 400),
        ({**pod("p"), "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "x"}]}}, 400),
    ]
    for data, code in cases:
        with pytest.raises(StatusError) as caught:
            apply(cluster, "a", data)
        assert caught.value.code == code


def test_sets_of_fields_survive_being_written() -> None:
    data = {
        "metadata": {"labels": {"a": "1"}, "finalizers": ["x/y"]},
        "spec": {
            "containers": [{"name": "c", "ports": [{"containerPort": 80}], "args": ["1", "2"]}],
            "nodeSelector": {"a": "b"},
            "volumes": [{"name": "v", "emptyDir": {}}],
        },
    }
    paths = set(leaves(kubernetes(), "core_v1.Pod", data))
    fields = json.loads(json.dumps(to_fields(paths)))
    assert from_fields(fields) == paths
    containers = fields["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert set(containers) == {".", "f:name", "f:ports", "f:args"}
    assert 'k:{"containerPort":80,"protocol":"TCP"}' in containers["f:ports"]
    assert fields["f:metadata"]["f:finalizers"] == {'v:"x/y"': {}}
    assert fields["f:spec"]["f:nodeSelector"] == {}
