"""Random requests to the API: objects with something wrong in them, wrong paths, queries, media types and bytes."""

from __future__ import annotations

import json
import random
from typing import Any

from earmark.apiserver.app import ApiApplication
from support.apiserver_http import Response, ask
from support.apiserver_registry import claim, pod, resource_slice

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"

SEEDS = [
    pod("a", priorityClassName="x", tolerations=[{"key": "a", "operator": "Exists"}], nodeSelector={"a": "b"}),
    claim("c", selectors=[{"cel": {"expression": "true"}}], capacity={"requests": {"memory": "1Gi"}}),
    resource_slice("s", devices=[{"name": "d", "attributes": {"a": {"int": 1}}, "capacity": {"m": {"value": "1"}},
                                  "taints": [{"key": "k", "effect": "NoSchedule"}]}]),
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}},
     "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}, "value": 3},
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
     "spec": {"minAvailable": "50%", "selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}},
    {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "type": "Normal", "reason": "r",
     "eventTime": "2026-01-01T00:00:00Z", "regarding": {"kind": "Pod"}, "action": "a", "reportingController": "x/y",
     "reportingInstance": "i"},
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"},
     "spec": {"taint": {"key": "k", "effect": "None"}, "deviceSelector": {"driver": "d"}}},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"leaseTransitions": 1}},
    {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "g"},
     "spec": {"selectors": [{"cel": {"expression": "device.driver == 'a'"}}], "config": [{"opaque": {"driver": "d", "parameters": {}}}]}},
]  # fmt: skip
COLLECTIONS = {
    "Pod": PODS, "Node": NODES, "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "Event": "/apis/events.k8s.io/v1/namespaces/default/events",
    "DeviceTaintRule": "/apis/resource.k8s.io/v1/devicetaintrules",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
}  # fmt: skip
JUNK: list[Any] = [
    None, True, 0, -1, 2**31, 2**63, 2**70, 1e308, 1.5, "", "a", "A b", "é" * 300, "\u0000", "1Gi", "-1", "1e999999",
    "9" * 5000, [], {}, [None], [[]], {"": None}, {"$patch": "delete"}, ["a", "a"], {"a": {"b": {}}},
    "2026-01-01T00:00:00Z", "device.driver ==", "(" * 3000, "device.attributes['a'].b in [1, 'x']", "'" + "\\" * 99,
    "[" * 400 + "]" * 400, "size(device) > 99999999999999999999", "!" * 5000, "device" + ".a" * 3000,
]  # fmt: skip
BYTES = [
    b"", b"{", b"[]", b"null", b'"x"', b"{}" * 3, b"\xff\xfe", b"{" * 5000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b"\x00" * 9,
    b"a: &a [*a]", b"a: &a {b: 1}\nc: {<<: *a}", b"- " * 3000, b"---\n---\n", b"? {a: b}\n: c", b"!!python/object:x {}",
    b"k8s\x00", b"k8s\x00\x0a\x08\x0a\x02v1\x12\x03Pod\x12\xff", b"x" * (3 * 1024 * 1024 + 1), b'{"metadata":{"name":1e999}}',
    b'{"kind":"Pod","kind":"Node"}', b'{"metadata":{"name":"\xed\xa0\x80"}}', b'{"metadata":{"name":"\\ud800"}}',
]  # fmt: skip
MEDIA_TYPES = [
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "", "a" * 300, "application/json;",
    "application/apply-patch+yaml", "application/merge-patch+json", "application/json-patch+json", "\x00",
    "application/strategic-merge-patch+json",
]  # fmt: skip
PATHS = [
    "/", "/api", "/apis", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v3/..", "/version", "/nope", "//", "/api/v1",
    "/api/v1/namespaces", "/api/v1/namespaces/x", "/api/v1/namespaces/default", "/api/v1/events", "/api/v1/namespaces/a/pods",
    "/api/v1/namespaces/default/pods/a/status", "/api/v1/namespaces/default/pods/" + "a" * 5000, "/apis/resource.k8s.io/v1/nope",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews", "/apis/apps/v1/deployments", "/api/v1/namespaces/\u00e9/pods/\u0000",
]  # fmt: skip
ACCEPTS = [
    "*/*", "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=Table;v=v9;g=x", "image/png", ";;;,,,=",
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
]  # fmt: skip


def mutated(rng: random.Random, value: Any) -> Any:
    """Return the value with something wrong in it."""
    if rng.random() < 0.15:
        return rng.choice(JUNK)
    if isinstance(value, dict):
        result = {key: (mutated(rng, item) if rng.random() < 0.4 else item) for key, item in value.items()}
        if rng.random() < 0.15 and result:
            result.pop(rng.choice(sorted(result)))
        if rng.random() < 0.1:
            result[rng.choice(["spec", "status", "metadata", "name", "x", "$patch", "finalizers"])] = rng.choice(JUNK)
        return result
    if isinstance(value, list):
        items = [mutated(rng, item) if rng.random() < 0.4 else item for item in value]
        return items * rng.choice([0, 1, 1, 1, 2])
    return value


async def plant(app: ApiApplication) -> None:
    """Make the objects that requests are about, where they are not there."""
    await ask(app, "POST", COLLECTIONS["PriorityClass"], body={"metadata": {"name": "x"}, "value": 1})
    for seed in SEEDS:
        await ask(app, "POST", COLLECTIONS[seed["kind"]], body=seed)


async def strange(app: ApiApplication, rng: random.Random) -> Response:
    """Send bytes that may be no object to a path that may be none."""
    seed = rng.choice(SEEDS)
    collection = COLLECTIONS[seed["kind"]]
    path = rng.choice([*PATHS, collection, f"{collection}/{seed['metadata']['name']}"])
    body = rng.choice([*BYTES, json.dumps(mutated(rng, seed)).encode(), json.dumps(seed).encode()])
    if rng.random() < 0.3:
        cut = rng.randrange(len(body) + 1)
        body = body[:cut] + rng.randbytes(rng.randrange(4)) + body[cut:]
    headers = {
        "content-type": rng.choice(MEDIA_TYPES),
        "accept": rng.choice(ACCEPTS),
        "user-agent": rng.choice(["", "k/1", "x" * 500]),
    }
    query = rng.choice(["", "limit=9999999999999999999", "&&&=", "%zz", "dryRun=x", "timeoutSeconds=-1", "force=1", "a=b&" * 200,
                        "fieldManager=" + "x" * 200, "pretty=1"])  # fmt: skip
    method = rng.choice(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get"])
    return await ask(app, method, path, body=body, query=query, headers=headers)


async def fuzzed(app: ApiApplication, rng: random.Random) -> Response:
    """Send one random request."""
    if rng.random() < 0.25:
        return await strange(app, rng)
    if rng.random() < 0.1:
        await plant(app)
    seed = rng.choice(SEEDS)
    collection = COLLECTIONS[seed["kind"]]
    name = seed["metadata"]["name"]
    body: Any = mutated(rng, seed)
    method = rng.choice(["POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "GET"])
    path = collection if method == "POST" else f"{collection}/{name}"
    if method == "POST" and isinstance(body, dict) and rng.random() < 0.6:
        # One that is not there yet: else nearly all would be refused for their name.
        body["metadata"] = {**seed["metadata"], "name": f"{name}{rng.randrange(10**6)}"}
    path += rng.choice(
        ["", "", "", "", "", "/status", "/status", "/binding", "/eviction", rng.choice(["/%00", "//", "/x/y"])]
    )
    headers = {}
    queries = []
    if method == "PATCH":
        headers["content-type"] = rng.choice(
            ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
             "application/apply-patch+yaml"]
        )  # fmt: skip
        if "apply" in headers["content-type"]:
            queries = ["fieldManager=a", "fieldManager=b", "fieldManager=b&force=true", "fieldManager=%00"]
        if "json-patch" in headers["content-type"]:
            where = rng.choice(["", "/spec", "/metadata", "/metadata/name", "/status/x", "/spec/containers/0", "/a/-"])
            body = [{"op": rng.choice(["add", "remove", "replace", "test", "move", "copy", "?"]), "path": where,
                     "value": rng.choice(JUNK), "from": rng.choice(["/spec", "/metadata", "", 3])}]  # fmt: skip
    elif method == "DELETE":
        body = rng.choice([None, {"gracePeriodSeconds": rng.choice(JUNK)}, {"preconditions": rng.choice(JUNK)}])
    query = rng.choice(
        ["", "", "", "limit=1", "limit=-1", "labelSelector=%00", "fieldSelector=a", "dryRun=All", "fieldValidation=Strict",
         "resourceVersion=1&resourceVersionMatch=Exact", "continue=AAAA", "fieldValidation=%ff",
         *queries * 5]
    )  # fmt: skip
    return await ask(app, method, path, body=body, query=query, headers=headers)
