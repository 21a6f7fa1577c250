"""Manifests are read whole or refused with source, line and field; applying them creates or replaces."""

from __future__ import annotations

import pytest

from earmark.apiserver.local import LocalApi
from earmark.apiserver.registry import Registry
from earmark.apiserver.storage import MemoryStore
from earmark.kube import objects
from earmark.kube.apply import Outcome, apply, in_order
from earmark.kube.manifests import Manifest, ManifestError, load_documents, load_manifests
from earmark.runtime.clock import LoopClock
from earmark.runtime.ids import SeededIds

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status:
  capacity: {cpu: 8}
"""


def test_documents_and_lists_are_opened_with_their_lines() -> None:
    text = f"# comment\n---\n{NODE}---\napiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: Pod, metadata: {{name: p}}}}\n---\n"
    assert [(item.kind, item.name, item.line) for item in load_manifests(text, "f")] == [
        ("Node", "n1", 3), ("Pod", "p", 12),
    ]  # fmt: skip


def test_json_and_merge_keys_are_read() -> None:
    assert load_manifests('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}', "f")[0].name == "n"
    text = "a: &base {x: 1, y: 1}\nb: {<<: *base, y: 2}\n"
    assert load_documents(text, "f")[0].data["b"] == {"y": 2, "x": 1}


def test_dates_stay_text() -> None:
    assert load_documents("a: 2026-01-01T00:00:00Z", "f")[0].data == {"a": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("a: [", "f:2: not valid YAML: "),
        ("kind: Pod\n", "f:1: apiVersion: is missing or no text"),
        ("apiVersion: v1\nkind: 3\n", "f:2: kind: is missing or no text"),
        ("apiVersion: v1\nkind: Pod\nmetadata:\n  name: 3\n", "f:4: metadata.name: must be text"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", "f:3: metadata.name: Pod needs a name"),
        ("apiVersion: v1\nkind: Pod\nspec: {}\n", "f:1: metadata: Pod needs metadata"),
        ("apiVersion: v1\nkind: Pod\nkind: Node\n", "f:3: the key 'kind' is there twice"),
        ("apiVersion: v1\nkind: List\nitems:\n- a: 1\n", "f:4: items[0].apiVersion: is missing or no text"),
        ("apiVersion: v1\nkind: PodList\nitems: 3\n", "f:1: items: must be a list"),
        ("- 1\n", "f:1: an object is a mapping"),
        ("a: !!python/name:os.system x\n", "f:1: a: "),
        ("a: .nan\n", "f:1: a: not a number that JSON has"),
        ("? [a]\n: 1\n", "f:1: a key has to be text"),
        ("\x00", "f: not valid YAML"),
        ("a: &a\n  b: *a\n", "f:1: "),
        ("[" * 5000, "f:1: not valid YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(text: str, want: str) -> None:
    with pytest.raises(ManifestError) as caught:
        load_manifests(text, "f")
    assert str(caught.value).startswith(want)
    assert "\n" not in str(caught.value)


@pytest.fixture
async def api(clock: LoopClock, ids: SeededIds) -> LocalApi:
    return LocalApi(Registry(MemoryStore(), clock, ids.uuid), clock)


def node(text: str = NODE) -> Manifest:
    return load_manifests(text, "f")[0]


@pytest.mark.virtual
async def test_applying_creates_changes_and_leaves_alone(api: LocalApi) -> None:
    assert (await apply(api, node())).outcome is Outcome.CREATED
    assert (await apply(api, node())).outcome is Outcome.UNCHANGED
    assert (await api.get(objects.Node, "n1")).status.capacity == {"cpu": "8"}
    changed = NODE.replace("zone: a", "rack: r").replace("cpu: 8", "cpu: 16") + "spec: {unschedulable: true}\n"
    assert (await apply(api, node(changed))).outcome is Outcome.CONFIGURED
    found = await api.get(objects.Node, "n1")
    assert found.status.capacity == {"cpu": "16"}
    assert found.spec.unschedulable
    assert found.metadata.labels == {"zone": "a", "rack": "r"}


@pytest.mark.virtual
async def test_a_bound_pod_is_taken_with_its_status_and_can_be_applied_again(api: LocalApi) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  nodeName: n1\n"
        "  containers: [{name: c, image: i}]\nstatus: {phase: Running, startTime: '2026-01-01T00:00:00Z'}\n"
    )
    await apply(api, node(text))
    pod = await api.get(objects.Pod, "p")
    assert (pod.spec.node_name, pod.status.phase, pod.status.start_time is not None) == ("n1", "Running", True)
    unbound = text.replace("  nodeName: n1\n", "").split("status:")[0]
    assert (await apply(api, node(unbound))).outcome is Outcome.UNCHANGED


@pytest.mark.virtual
async def test_a_refusal_names_source_line_and_field(api: LocalApi) -> None:
    text = "\n\n" + NODE + "spec: {taints: [{key: a}]}\n"
    with pytest.raises(ManifestError, match=r"f:3: spec\.taints\[0\]\.effect: Node n1: Required value"):
        await apply(api, node(text))
    with pytest.raises(ManifestError, match=r"f:1: spec\.nope: Node n1: unknown field"):
        await apply(api, node(NODE + "spec: {nope: 1}\n"))
    with pytest.raises(ManifestError, match=r"f:1: kind: Deployment d: the kind is not served"):
        await apply(api, node("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n"))


def test_what_others_refer_to_comes_first() -> None:
    text = "".join(
        f"---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\n" for kind in ("Pod", "Node", "Namespace", "Lease")
    )
    assert [item.kind for item in in_order(load_manifests(text, "f"))] == ["Namespace", "Node", "Pod", "Lease"]
