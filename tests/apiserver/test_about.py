"""What the API says about itself: OpenAPI v2 for older clients, and who may do what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from earmark.apiserver import openapi, openapi2
from earmark.apiserver.app import ApiApplication
from support.apiserver_http import application, ask
from support.apiserver_registry import Cluster

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.fixture
def app() -> ApiApplication:
    cluster = Cluster()
    return application(cluster.registry, cluster.clock)


def references(value: Any) -> set[str]:
    """Return all that $ref names in a document."""
    if isinstance(value, dict):
        found = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return found.union(*(references(item) for item in value.values()))
    return set().union(*(references(item) for item in value)) if isinstance(value, list) else set()


async def test_openapi_v2_has_every_kind_and_no_loose_reference(app: ApiApplication) -> None:
    answer = await ask(app, "GET", "/openapi/v2", headers={"accept": "application/json"})
    document = answer.json
    assert (answer.status, document["swagger"]) == (200, "2.0")
    assert {text.removeprefix("#/definitions/") for text in references(document)} <= set(document["definitions"])
    described = {
        (kind["group"], kind["kind"])
        for definition in document["definitions"].values()
        for kind in definition.get("x-kubernetes-group-version-kind", ())
    }
    assert {("", "Pod"), ("", "Event"), ("events.k8s.io", "Event"), ("resource.k8s.io", "ResourceClaim")} <= described
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    # By this kubectl sees that the server validates fields.
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}


def test_openapi_v2_speaks_of_references_and_unions_as_v2_does() -> None:
    definitions = openapi2.swagger()["definitions"]
    spec = definitions["io.k8s.api.core.v1.Pod"]["properties"]["spec"]
    assert spec == {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}
    port = definitions["io.k8s.api.core.v1.HTTPGetAction"]["properties"]["port"]
    assert port == {"type": "string", "format": "int-or-string"}
    containers = definitions["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert not any(key in json.dumps(definitions) for key in ("oneOf", "allOf", "#/components"))


async def test_openapi_v2_in_protobuf_is_what_kubectl_asks_for(app: ApiApplication) -> None:
    answer = await ask(app, "GET", "/openapi/v2", headers={"accept": PROTOBUF})
    assert answer.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert answer.body.startswith(b"\x0a\x032.0\x12")


def test_the_protobuf_form_of_a_schema() -> None:
    schema = {
        "type": "object", "required": ["a"],
        "properties": {"a": {"type": "array", "items": {"$ref": "#/definitions/x"}, "x-k": "v"}},
    }  # fmt: skip
    reference = b"\x0a\x0f#/definitions/x"
    items = b"\xba\x01" + bytes([len(reference) + 2]) + b"\x0a" + bytes([len(reference)]) + reference
    text = openapi2.encode({"swagger": "2.0", "info": {"title": "t", "version": "v"}, "paths": {},
                            "definitions": {"d": schema}})  # fmt: skip
    assert items in text
    assert b'\x0a\x03x-k\x12\x05\x12\x03"v"' in text
    assert b"\x9a\x01\x01a" in text  # required, field 19
    assert b"\xb2\x01\x08\x0a\x06object" in text  # type, field 22


async def test_openapi_v3_names_the_document_of_each_group(app: ApiApplication) -> None:
    paths = (await ask(app, "GET", "/openapi/v3")).json["paths"]
    assert set(paths) == set(openapi.documents())
    for key in paths:
        assert (await ask(app, "GET", f"/openapi/v3/{key}")).json["openapi"] == "3.0.0"


ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def test_whoever_has_the_token_may_do_everything(app: ApiApplication) -> None:
    spec = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}
    answer = await ask(app, "POST", ACCESS, body={"spec": spec})
    assert (answer.status, answer.json["kind"], answer.json["spec"]) == (201, "SelfSubjectAccessReview", spec)
    assert answer.json["status"]["allowed"] is True
    rules = (await ask(app, "POST", RULES, body={"spec": {"namespace": "default"}})).json["status"]
    assert rules["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    who = (await ask(app, "POST", WHO, body={})).json["status"]["userInfo"]
    assert who == {"username": "earmark", "groups": ["system:masters", "system:authenticated"]}


async def test_reviews_are_refused_as_other_kinds_are(app: ApiApplication) -> None:
    empty = await ask(app, "POST", ACCESS, body={"spec": {}})
    assert (empty.status, empty.json["details"]["causes"][0]["field"]) == (422, "spec.resourceAttributes")
    assert (await ask(app, "POST", RULES, body={"spec": {}})).status == 400
    assert (await ask(app, "POST", ACCESS, body={"kind": "Pod"})).status == 400
    assert (await ask(app, "POST", ACCESS, body=[])).status == 400
    assert (await ask(app, "GET", ACCESS)).status == 405
    assert (await ask(app, "POST", ACCESS, body={"spec": {"a": 1}}, query="fieldValidation=Strict")).status == 400


async def test_reviews_are_discovered(app: ApiApplication) -> None:
    listed = (await ask(app, "GET", "/apis/authorization.k8s.io/v1")).json["resources"]
    assert [(entry["name"], entry["verbs"]) for entry in listed] == [
        ("selfsubjectaccessreviews", ["create"]), ("selfsubjectrulesreviews", ["create"]),
    ]  # fmt: skip
