"""What the registry does alike for all kinds: names, versions, unknown fields, lists, watches, namespaces."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from earmark.apiserver.errors import StatusError
from earmark.apiserver.storage import Change, MemoryStore
from earmark.kube.api import PatchType
from earmark.kube.resources import BY_KIND
from support.apiserver_registry import Cluster, causes, claim, pod

PODS = BY_KIND["Pod"]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, **more}


def test_a_cluster_begins_with_two_namespaces_and_the_system_s_classes(cluster: Cluster) -> None:
    assert cluster.exists("Namespace", "default")
    assert cluster.exists("Namespace", "kube-system")
    assert cluster.get("PriorityClass", "system-cluster-critical")["value"] == 2_000_000_000


def test_versions_rise_by_one_over_all_kinds(cluster: Cluster) -> None:
    first = cluster.create(pod("a"))["metadata"]["resourceVersion"]
    second = cluster.create(node("n"))["metadata"]["resourceVersion"]
    assert int(second) == int(first) + 1


def test_a_missing_namespace_is_named(cluster: Cluster) -> None:
    with pytest.raises(StatusError, match='namespaces "nope" not found') as caught:
        cluster.create(pod("a"), namespace="nope")
    assert caught.value.code == 404


def test_an_object_exists_once(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    with pytest.raises(StatusError, match='pods "a" already exists') as caught:
        cluster.create(pod("a"))
    assert (caught.value.code, caught.value.reason) == (409, "AlreadyExists")


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a" * 254, "a..b", "é"])
def test_names_are_subdomains(cluster: Cluster, name: str) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.create(node(name))
    assert causes(caught.value) == [("metadata.name", "Invalid")]


def test_generated_names_differ(cluster: Cluster) -> None:
    data = pod("x")
    data["metadata"] = {"generateName": "job-"}
    names = {cluster.create(data)["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


def test_invalid_labels_are_refused(cluster: Cluster) -> None:
    data = node("n")
    data["metadata"]["labels"] = {"a b": "ok", "ok": "not ok"}
    with pytest.raises(StatusError) as caught:
        cluster.create(data)
    assert causes(caught.value) == [("metadata.labels", "Invalid"), ("metadata.labels", "Invalid")]


def test_unknown_fields_are_refused_warned_of_or_dropped(cluster: Cluster) -> None:
    data = pod("a", nope=1)
    with pytest.raises(StatusError, match=r'strict decoding error: unknown field "spec\.nope"') as caught:
        cluster.create(data, strict=True)
    assert caught.value.code == 400
    warnings: list[str] = []
    assert "nope" not in cluster.create(data, warnings=warnings)["spec"]
    assert warnings == ['unknown field "spec.nope"']


def test_a_value_of_a_wrong_type_is_named(cluster: Cluster) -> None:
    with pytest.raises(StatusError, match=r"spec\.priority: cannot unmarshal string") as caught:
        cluster.create(pod("a", priority="high"))
    assert caught.value.code == 400


def test_a_bad_quantity_is_named(cluster: Cluster) -> None:
    data = pod("a")
    data["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "much"}}
    with pytest.raises(StatusError, match=r"spec\.containers\[0\]\.resources\.requests\.cpu: quantities must match"):
        cluster.create(data)


def test_a_write_that_changes_nothing_keeps_the_version(cluster: Cluster) -> None:
    data = cluster.create(pod("a"))
    assert cluster.update(data) == data
    assert cluster.patch("Pod", "a", {"metadata": {"labels": None}}) == data


def test_a_dry_run_changes_nothing(cluster: Cluster) -> None:
    revision = cluster.registry.revision
    assert cluster.create(pod("a"), dry_run=True)["spec"]["priority"] == 0
    assert not cluster.exists("Pod", "a")
    cluster.create(pod("b"))
    assert cluster.patch("Pod", "b", {"metadata": {"labels": {"x": "y"}}}, dry_run=True)["metadata"]["labels"]
    assert "labels" not in cluster.get("Pod", "b")["metadata"]
    assert cluster.delete("Pod", "b", dry_run=True)
    assert cluster.registry.revision == revision + 1


def test_name_and_uid_cannot_be_changed(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    with pytest.raises(StatusError, match=r"the name of the object \(b\) does not match"):
        cluster.patch("Pod", "a", {"metadata": {"name": "b"}})
    with pytest.raises(StatusError) as caught:
        cluster.patch("Pod", "a", {"metadata": {"uid": "other"}})
    assert caught.value.code == 409


def test_a_patch_that_makes_no_object_is_refused(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    for patch_type, patch in (
        (PatchType.MERGE, {"metadata": None}),
        (PatchType.MERGE, [1]),
        (PatchType.JSON, [{"op": "remove", "path": "/metadata"}]),
        (PatchType.JSON, [{"op": "replace", "path": "", "value": 3}]),
        (PatchType.JSON, {}),
        (PatchType.STRATEGIC, {"spec": {"containers": [{"image": "x"}]}}),
        (PatchType.MERGE, {"spec": 5}),
    ):
        with pytest.raises(StatusError) as caught:
            cluster.patch("Pod", "a", patch, patch_type=patch_type)
        assert caught.value.code in (400, 422)


# --- lists -----------------------------------------------------------------------------------------------------------


def names(cluster: Cluster, **selection: Any) -> list[str]:
    import msgspec

    page = cluster.registry.list(PODS, **selection)
    return [msgspec.json.decode(item)["metadata"]["name"] for item in page.items]


def test_lists_are_sorted_and_select_by_labels_and_fields(cluster: Cluster) -> None:
    for name, app, where in (("b", "web", "n1"), ("a", "web", ""), ("c", "db", "n1")):
        data = pod(name, **({"nodeName": where} if where else {}))
        data["metadata"]["labels"] = {"app": app}
        cluster.create(data)
    assert names(cluster) == ["a", "b", "c"]
    assert names(cluster, label_selector="app in (web)") == ["a", "b"]
    assert names(cluster, label_selector="app!=web") == ["c"]
    assert names(cluster, field_selector="spec.nodeName=n1") == ["b", "c"]
    assert names(cluster, field_selector="spec.nodeName=,metadata.name!=b") == ["a"]
    assert names(cluster, namespace="kube-system") == []


@pytest.mark.parametrize(
    "selection", [{"label_selector": "a=b=c"}, {"field_selector": "spec.nope=1"}, {"field_selector": "x"}]
)
def test_a_bad_selector_is_refused(cluster: Cluster, selection: dict[str, Any]) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.registry.list(PODS, **selection)
    assert caught.value.code == 400


def test_pages_together_are_the_list(cluster: Cluster) -> None:
    for index in range(7):
        cluster.create(pod(f"p{index}"))
    seen: list[bytes] = []
    page = cluster.registry.list(PODS, limit=3)
    first = page.revision
    while True:
        seen += page.items
        assert page.remaining == (7 - len(seen) if page.continue_token else 0)
        if not page.continue_token:
            break
        cluster.create(node(f"n{len(seen)}"))
        page = cluster.registry.list(PODS, limit=3, continue_token=page.continue_token)
        assert page.revision == first
    assert seen == cluster.registry.list(PODS).items


def test_pages_of_a_namespace_hold_nothing_of_others(cluster: Cluster) -> None:
    for namespace in ("d", "default2", "e"):
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for namespace in ("d", "default", "default2"):
        for index in range(3):
            cluster.create(pod(f"{namespace}-{index}"), namespace=namespace)
    page = cluster.registry.list(PODS, "default", limit=2)
    rest = cluster.registry.list(PODS, "default", limit=2, continue_token=page.continue_token)
    names = [msgspec.json.decode(body)["metadata"]["name"] for body in page.items + rest.items]
    assert (names, page.remaining, rest.continue_token) == (["default-0", "default-1", "default-2"], 1, "")
    assert cluster.registry.list(PODS, "e").items == []


def test_a_page_of_a_selection_does_not_say_how_many_are_left(cluster: Cluster) -> None:
    for index in range(3):
        cluster.create(pod(f"p{index}"))
    page = cluster.registry.list(PODS, limit=1, field_selector="metadata.name!=p1")
    assert (bool(page.continue_token), page.remaining) == (True, 0)


@pytest.mark.parametrize("token", ["x", "###", "é", "WzEsMiwzXQ"])
def test_a_bad_continue_token_is_refused(cluster: Cluster, token: str) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.registry.list(PODS, continue_token=token)
    assert caught.value.code == 400


# --- watches ---------------------------------------------------------------------------------------------------------


def test_a_watch_sees_what_follows_its_version(cluster: Cluster) -> None:
    version = cluster.create(pod("a"))["metadata"]["resourceVersion"]
    watch = cluster.registry.watch(PODS, resource_version=version)
    assert watch.take() == []
    cluster.patch("Pod", "a", {"metadata": {"labels": {"x": "y"}}})
    cluster.create(claim("c"))
    cluster.delete("Pod", "a")
    assert [event.type for event in watch.take()] == ["MODIFIED", "DELETED"]


def test_a_watch_without_version_begins_with_what_is_there(cluster: Cluster) -> None:
    cluster.create(pod("b"))
    cluster.create(pod("a"))
    watch = cluster.registry.watch(PODS)
    assert [(event.type, b'"name":"a"' in event.body) for event in watch.take()] == [("ADDED", True), ("ADDED", False)]


def test_a_selecting_watch_sees_objects_come_and_go(cluster: Cluster) -> None:
    cluster.create(pod("a"))
    watch = cluster.registry.watch(PODS, resource_version=str(cluster.registry.revision), label_selector="on=1")
    for label in ("1", "1", None):
        cluster.patch("Pod", "a", {"metadata": {"labels": {"on": label}, "annotations": {"n": str(label)}}})
    cluster.patch("Pod", "a", {"metadata": {"labels": {"on": "1"}}})
    cluster.delete("Pod", "a")
    assert [event.type for event in watch.take()] == ["ADDED", "DELETED", "ADDED", "DELETED"]


def test_a_forgotten_version_is_410(cluster: Cluster) -> None:
    version = cluster.create(pod("a"))["metadata"]["resourceVersion"]
    cluster.create(pod("b"))
    watch = cluster.registry.watch(PODS, resource_version=version)
    cluster.registry.compact()
    for act in (watch.take, lambda: cluster.registry.watch(PODS, resource_version=version)):
        with pytest.raises(StatusError, match="too old resource version") as caught:
            act()
        assert (caught.value.code, caught.value.reason) == (410, "Expired")
    cluster.registry.watch(PODS, resource_version=str(cluster.registry.revision))


def test_the_history_forgets_by_itself() -> None:
    cluster = Cluster(history_length=5)
    version = cluster.create(pod("a"))["metadata"]["resourceVersion"]
    for index in range(6):
        cluster.create(pod(f"p{index}"))
    with pytest.raises(StatusError) as caught:
        cluster.registry.watch(PODS, resource_version=version)
    assert caught.value.code == 410


def test_a_version_that_this_store_never_had_is_410(cluster: Cluster) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.registry.watch(PODS, resource_version="999999")
    assert caught.value.code == 410


class SlowStore(MemoryStore):
    """Changes become durable when the test says so."""

    def append(self, change: Change) -> None:
        pass

    def commit(self, revision: int) -> None:
        super().append(Change("", "", "", revision, None))


def test_watches_see_exactly_what_is_durable() -> None:
    store = SlowStore()
    cluster = Cluster(store)
    store.commit(cluster.registry.revision)
    watch = cluster.registry.watch(PODS, resource_version=str(cluster.registry.revision))
    first = int(cluster.create(pod("a"))["metadata"]["resourceVersion"])
    cluster.create(pod("b"))
    cluster.patch("Pod", "a", {"metadata": {"labels": {"x": "y"}}})
    store.commit(first)
    assert [event.revision for event in watch.take()] == [first]
    late = cluster.registry.watch(PODS)
    assert [event.revision for event in late.take()] == [first]
    store.commit(first + 2)
    for each in (watch, late):
        assert [(event.type, event.revision) for event in each.take()] == [
            ("ADDED", first + 1),
            ("MODIFIED", first + 2),
        ]


# --- namespaces and other kinds --------------------------------------------------------------------------------------


def test_a_deleted_namespace_goes_when_it_is_empty(cluster: Cluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    cluster.create(pod("pending"), namespace="x")
    cluster.create(pod("bound", nodeName="n1"), namespace="x")
    assert not cluster.delete("Namespace", "x")
    assert not cluster.exists("Pod", "pending", "x")
    assert cluster.get("Namespace", "x")["status"]["phase"] == "Terminating"
    with pytest.raises(StatusError, match="because it is being terminated"):
        cluster.create(pod("late"), namespace="x")
    cluster.delete("Pod", "bound", "x", grace_seconds=0)
    assert not cluster.exists("Namespace", "x")


def test_to_delete_again_what_finalizers_keep_changes_nothing(cluster: Cluster) -> None:
    held = claim("c")
    held["metadata"]["finalizers"] = ["example.com/keep"]
    cluster.create(held)
    cluster.delete("ResourceClaim", "c")
    before, revision = cluster.get("ResourceClaim", "c"), cluster.registry.revision
    assert not cluster.delete("ResourceClaim", "c")
    assert (cluster.get("ResourceClaim", "c"), cluster.registry.revision) == (before, revision)


def test_the_default_namespace_stays(cluster: Cluster) -> None:
    with pytest.raises(StatusError, match="may not be deleted"):
        cluster.delete("Namespace", "default")


def test_a_priority_class_keeps_its_value(cluster: Cluster) -> None:
    cluster.create({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10})
    with pytest.raises(StatusError) as caught:
        cluster.patch("PriorityClass", "high", {"value": 11})
    assert causes(caught.value) == [("value", "Forbidden")]


def test_a_disruption_budget_update_names_its_version(cluster: Cluster) -> None:
    data = cluster.create({"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"minAvailable": 1}})
    del data["metadata"]["resourceVersion"]
    with pytest.raises(StatusError) as caught:
        cluster.update(data)
    assert causes(caught.value) == [("metadata.resourceVersion", "Invalid")]


def test_a_node_is_made_with_its_status(cluster: Cluster) -> None:
    made = cluster.create(node("n", status={"capacity": {"cpu": 8}}))
    assert made["status"] == {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}


def test_an_event_needs_its_fields(cluster: Cluster) -> None:
    with pytest.raises(StatusError) as caught:
        cluster.create({"kind": "Event", "metadata": {"name": "e"}, "type": "Odd"})
    assert ("eventTime", "Required") in causes(caught.value)
    assert ("type", "NotSupported") in causes(caught.value)
