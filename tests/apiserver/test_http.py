"""The API over HTTP, request by request: what it answers to good and to bad ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from earmark.apiserver.app import ApiApplication
from earmark.apiserver.faults import RequestMatch
from earmark.apiserver.storage import Change, MemoryStore
from support.apiserver_http import application, ask
from support.apiserver_registry import Cluster, claim, pod

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def app(cluster: Cluster) -> ApiApplication:
    return application(cluster.registry, cluster.clock)


async def test_every_request_needs_the_token(app: ApiApplication) -> None:
    for path in (PODS, "/version", "/readyz", "/nope"):
        refused = await ask(app, "GET", path, token="wrong")
        assert (refused.status, refused.json["reason"]) == (401, "Unauthorized")
    assert (await ask(app, "GET", PODS)).status == 200


async def test_objects_are_made_read_changed_and_deleted(app: ApiApplication) -> None:
    made = await ask(app, "POST", PODS, body=pod("a"))
    assert (made.status, made.json["kind"], made.json["metadata"]["namespace"]) == (201, "Pod", "default")
    read = await ask(app, "GET", f"{PODS}/a")
    assert read.json == made.json
    patch: dict[str, Any] = {"headers": {"content-type": "application/merge-patch+json"}}
    changed = await ask(app, "PATCH", f"{PODS}/a", body={"metadata": {"labels": {"x": "y"}}}, **patch)
    assert changed.json["metadata"]["labels"] == {"x": "y"}
    assert (await ask(app, "PUT", f"{PODS}/a", body=made.json)).status == 409
    listed = await ask(app, "GET", "/api/v1/pods", query="labelSelector=x%3Dy")
    assert (listed.json["kind"], [item["metadata"]["name"] for item in listed.json["items"]]) == ("PodList", ["a"])
    gone = await ask(app, "DELETE", f"{PODS}/a")
    assert (gone.status, gone.json["kind"]) == (200, "Pod")
    assert (await ask(app, "GET", f"{PODS}/a")).json["details"] == {"name": "a", "kind": "pods"}


class HeldStore(MemoryStore):
    """Changes become durable when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = asyncio.Event()
        self.kept.set()
        self._held: list[Change] = []

    def append(self, change: Change) -> None:
        self._held.append(change)
        if self.kept.is_set():
            self.keep()

    def keep(self) -> None:
        for change in self._held:
            super().append(change)
        self._held.clear()
        self.kept.set()

    async def durable(self, revision: int) -> None:
        await self.kept.wait()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_refusal_tells_of_nothing_that_a_crash_would_undo(method: str) -> None:
    store = HeldStore()
    cluster = Cluster(store)
    app = application(cluster.registry, cluster.clock)
    if method == "GET":
        cluster.create(claim("c"))
    store.kept.clear()
    if method == "GET":
        cluster.delete("ResourceClaim", "c")
        asked = asyncio.ensure_future(ask(app, "GET", f"{CLAIMS}/c"))
    else:
        cluster.create(claim("c"))
        asked = asyncio.ensure_future(ask(app, "POST", CLAIMS, body=claim("c")))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not asked.done()
    store.keep()
    assert (await asked).status == {"GET": 404, "POST": 409}[method]


async def test_a_deletion_that_is_done_answers_with_a_status(app: ApiApplication) -> None:
    path = CLAIMS
    uid = (await ask(app, "POST", path, body=claim("c"))).json["metadata"]["uid"]
    gone = (await ask(app, "DELETE", f"{path}/c", body={"preconditions": {"uid": uid}})).json
    assert (gone["status"], gone["details"]["uid"], gone["details"]["group"]) == ("Success", uid, "resource.k8s.io")


async def test_binding(app: ApiApplication, cluster: Cluster) -> None:
    await ask(app, "POST", PODS, body=pod("a"))
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await ask(app, "POST", f"{PODS}/a/binding", body=body)).status == 201
    assert cluster.get("Pod", "a")["spec"]["nodeName"] == "n1"
    assert (await ask(app, "POST", f"{PODS}/a/binding", body=body)).status == 409


def budget(allowed: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1},
    }  # fmt: skip


async def test_an_eviction_takes_from_the_budget(app: ApiApplication, cluster: Cluster) -> None:
    made = cluster.create(budget(1))
    cluster.patch("PodDisruptionBudget", "b", {"status": budget(1)["status"]}, "status")
    assert made["metadata"]["generation"] == 1
    for name in ("a", "b"):
        data = pod(name, nodeName="n1")
        data["metadata"]["labels"] = {"app": "x"}
        cluster.create(data)
        cluster.patch("Pod", name, {"status": {"phase": "Running"}}, "status")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert (await ask(app, "POST", f"{PODS}/a/eviction", body=eviction)).status == 201
    gone = cluster.get("Pod", "a")
    assert "deletionTimestamp" in gone["metadata"]
    assert [item["reason"] for item in gone["status"]["conditions"]] == ["EvictionByEvictionAPI"]
    assert cluster.get("PodDisruptionBudget", "b")["status"]["disruptionsAllowed"] == 0
    eviction["metadata"] = {"name": "b"}
    refused = await ask(app, "POST", f"{PODS}/b/eviction", body=eviction)
    assert (refused.status, refused.json["message"]) == (
        429, "Cannot evict pod as it would violate the pod's disruption budget.",
    )  # fmt: skip
    assert "deletionTimestamp" not in cluster.get("Pod", "b")["metadata"]
    # A plain deletion asks no budget.
    assert (await ask(app, "DELETE", f"{PODS}/b")).status == 200


async def test_protobuf_bodies_are_read(app: ApiApplication) -> None:
    # What `kubectl create priorityclass low --value=-5 --description=d` sends.
    meta = bytes([0x0A, 3]) + b"low" + bytes([0x12, 0, 0x1A, 0, 0x22, 0, 0x2A, 0, 0x32, 0, 0x38, 0, 0x42, 0])
    raw = bytes([0x0A, len(meta)]) + meta + bytes([0x10, 0xFB] + [0xFF] * 8 + [1, 0x18, 0, 0x22, 1]) + b"d"
    identity = bytes([0x0A, 20]) + b"scheduling.k8s.io/v1" + bytes([0x12, 13]) + b"PriorityClass"
    body = (
        b"k8s\0" + bytes([0x0A, len(identity)]) + identity + bytes([0x12, len(raw)]) + raw + bytes([0x1A, 0, 0x22, 0])
    )
    path, headers = (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"content-type": "application/vnd.kubernetes.protobuf"},
    )
    made = await ask(app, "POST", path, body=body, headers=headers)
    assert (made.status, made.json["value"], made.json["description"]) == (201, -5, "d")
    for length in range(len(body)):
        assert (await ask(app, "POST", path, body=body[:length], headers=headers)).status in (400, 409, 422)


async def test_openapi_describes_what_kubectl_patches_by(app: ApiApplication) -> None:
    root = (await ask(app, "GET", "/openapi/v3")).json["paths"]
    assert set(root) >= {"api/v1", "apis/resource.k8s.io/v1"}
    core = (await ask(app, "GET", "/openapi/v3/api/v1")).json
    spec = core["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert spec["containers"]["x-kubernetes-patch-merge-key"] == "name"
    patch = core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    for schema in core["components"]["schemas"].values():
        for value in schema["properties"].values():
            for reference in value.get("allOf", []):
                assert reference["$ref"].rsplit("/", 1)[1] in core["components"]["schemas"]


async def test_collections_can_be_deleted(app: ApiApplication, cluster: Cluster) -> None:
    for name in ("a", "b"):
        await ask(app, "POST", PODS, body=pod(name))
    gone = await ask(app, "DELETE", PODS, query="fieldSelector=metadata.name%3Da")
    assert [item["metadata"]["name"] for item in gone.json["items"]] == ["a"]
    assert not cluster.exists("Pod", "a")
    assert cluster.exists("Pod", "b")


@pytest.mark.parametrize(
    ("method", "path", "query", "body", "headers", "status", "reason"),
    [
        ("GET", "/api/v1/nope", "", None, {}, 404, "NotFound"),
        ("GET", "/apis/apps/v1/deployments", "", None, {}, 404, "NotFound"),
        ("GET", "/api/v1/pods/a", "", None, {}, 404, "NotFound"),
        ("GET", f"{PODS}/a/log", "", None, {}, 404, "NotFound"),
        ("GET", f"{NODES}/n", "", None, {}, 404, "NotFound"),
        ("BREW", PODS, "", None, {}, 405, "MethodNotAllowed"),
        ("POST", "/api/v1/pods", "", pod("a"), {}, 405, "MethodNotAllowed"),
        ("POST", f"{PODS}/a", "", pod("a"), {}, 405, "MethodNotAllowed"),
        ("PUT", PODS, "", pod("a"), {}, 405, "MethodNotAllowed"),
        ("POST", PODS, "", b"", {}, 400, "BadRequest"),
        ("POST", PODS, "", b"{", {}, 400, "BadRequest"),
        ("POST", PODS, "", b"[" * 100_000, {}, 400, "BadRequest"),
        ("POST", PODS, "", b'{"a":"\xff"}', {}, 400, "BadRequest"),
        ("POST", PODS, "", [], {}, 400, "BadRequest"),
        ("POST", PODS, "", {"apiVersion": "v1", "kind": "Node"}, {}, 400, "BadRequest"),
        ("POST", PODS, "", {"apiVersion": "v2", "kind": "Pod"}, {}, 400, "BadRequest"),
        ("POST", PODS, "", {**pod("a"), "metadata": {"name": "a", "namespace": "x"}}, {}, 400, "BadRequest"),
        ("POST", PODS, "", {**pod("a"), "metadata": {"name": "a", "resourceVersion": "3"}}, {}, 400, "BadRequest"),
        ("POST", PODS, "", pod("a"), {"content-type": "text/plain"}, 415, "UnsupportedMediaType"),
        ("PATCH", f"{PODS}/a", "", {}, {}, 415, "UnsupportedMediaType"),
        ("POST", PODS, "", b" " * (3 * 1024 * 1024 + 1), {}, 413, "RequestEntityTooLarge"),
        ("POST", PODS, "fieldValidation=Sure", pod("a"), {}, 422, "Invalid"),
        ("POST", PODS, "dryRun=Some", pod("a"), {}, 422, "Invalid"),
        ("POST", PODS, "fieldValidation=Strict", pod("a", nope=1), {}, 400, "BadRequest"),
        ("GET", PODS, "limit=x", None, {}, 400, "BadRequest"),
        ("GET", PODS, "watch=1&resourceVersion=x", None, {}, 400, "BadRequest"),
        ("GET", PODS, "watch=1&resourceVersion=99999", None, {}, 410, "Expired"),
        ("GET", PODS, "continue=x", None, {}, 400, "BadRequest"),
        ("GET", PODS, "labelSelector=a%3Db%3Dc", None, {}, 400, "BadRequest"),
        ("DELETE", f"{PODS}/a", "", {"kind": "Pod"}, {}, 400, "BadRequest"),
        ("DELETE", f"{PODS}/a", "gracePeriodSeconds=soon", None, {}, 400, "BadRequest"),
        ("GET", PODS, "&".join(f"a{number}=1" for number in range(200)), None, {}, 400, "BadRequest"),
    ],
)  # fmt: skip
async def test_bad_requests_get_kubernetes_answers(
    app: ApiApplication,
    method: str,
    path: str,
    query: str,
    body: Any,
    headers: dict[str, str],
    status: int,
    reason: str,
) -> None:
    answer = await ask(app, method, path, query=query, body=body, headers=headers)
    assert (answer.status, answer.json["reason"], answer.json["kind"]) == (status, reason, "Status")
    assert answer.json["code"] == status
    assert answer.json["message"]


async def test_an_invalid_object_names_its_fields(app: ApiApplication) -> None:
    answer = await ask(app, "POST", PODS, body=pod("a", restartPolicy="Maybe", containers=[]))
    assert answer.status == 422
    assert [cause["field"] for cause in answer.json["details"]["causes"]] == ["spec.containers", "spec.restartPolicy"]
    assert answer.json["message"].startswith(
        'Pod "a" is invalid: [spec.containers: Required value, spec.restartPolicy: '
    )


async def test_unknown_fields_are_warned_of(app: ApiApplication) -> None:
    answer = await ask(app, "POST", PODS, body=pod("a", nope=1))
    assert answer.status == 201
    assert answer.headers["warning"] == '299 - "unknown field \\"spec.nope\\""'


async def test_yaml_bodies_are_read(app: ApiApplication) -> None:
    text = b"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
    assert (await ask(app, "POST", NODES, body=text, headers={"content-type": "application/yaml"})).status == 201


async def test_core_events_and_events_are_the_same(app: ApiApplication) -> None:
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R", "message": "m", "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"}, "source": {"component": "test"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "count": 2,
    }  # fmt: skip
    path = "/api/v1/namespaces/default/events"
    assert (await ask(app, "POST", path, body=event)).json["message"] == "m"
    newer = (await ask(app, "GET", "/apis/events.k8s.io/v1/namespaces/default/events/e")).json
    assert (newer["note"], newer["regarding"]["name"], newer["deprecatedCount"]) == ("m", "a", 2)
    found = await ask(app, "GET", path, query="fieldSelector=involvedObject.name%3Da,involvedObject.kind%3DPod")
    assert [item["message"] for item in found.json["items"]] == ["m"]
    assert found.json["apiVersion"] == "v1"


async def test_discovery_tells_what_is_served(app: ApiApplication) -> None:
    groups = (await ask(app, "GET", "/apis")).json
    assert "resource.k8s.io" in [group["name"] for group in groups["groups"]]
    resources = (await ask(app, "GET", "/api/v1")).json["resources"]
    assert {"pods", "pods/status", "pods/binding", "events"} <= {resource["name"] for resource in resources}
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    aggregated = await ask(app, "GET", "/apis", headers={"accept": accept})
    assert aggregated.headers["content-type"].endswith("v=v2;as=APIGroupDiscoveryList")
    assert aggregated.json["kind"] == "APIGroupDiscoveryList"
    assert (await ask(app, "GET", "/readyz")).body == b"ok"
    assert (await ask(app, "GET", "/version")).json["major"] == "1"


async def test_tables_show_columns(app: ApiApplication) -> None:
    await ask(app, "POST", PODS, body=pod("a", nodeName="n1"))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    table = (await ask(app, "GET", PODS, headers={"accept": accept})).json
    assert table["kind"] == "Table"
    cells = dict(zip([column["name"] for column in table["columnDefinitions"]], table["rows"][0]["cells"], strict=True))
    assert (cells["Name"], cells["Ready"], cells["Status"], cells["Age"], cells["Node"]) == (
        "a", "0/1", "Pending", "0s", "n1",
    )  # fmt: skip
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_injected_faults_are_answered(app: ApiApplication, cluster: Cluster) -> None:
    cluster.registry.faults.fail(RequestMatch("create", "Pod", "a"), times=1, status=500)
    assert (await ask(app, "POST", PODS, body=pod("a"))).status == 500
    assert (await ask(app, "POST", PODS, body=pod("a"))).status == 201
    cluster.registry.faults.lose(RequestMatch("delete", "Pod"), times=1, done=True)
    assert (await ask(app, "DELETE", f"{PODS}/a")).status == 503
    assert not cluster.exists("Pod", "a")
