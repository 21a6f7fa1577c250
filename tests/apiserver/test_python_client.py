"""The official Python client against the embedded API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient

from support.apiserver_http import component


async def with_client(state: Path, use: Callable[[Any], None]) -> None:
    """Run the API, and `use` with a client of it in a thread: the client blocks."""
    async with component(state):
        api = config.new_client_from_config(str(state / "kubeconfig"))
        try:
            await asyncio.to_thread(use, api)
        finally:
            api.close()


def pod(name: str) -> Any:
    container = client.V1Container(name="main", image="registry.example/app:1")
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": "x"}), spec=client.V1PodSpec(containers=[container])
    )


async def test_objects_are_made_read_changed_and_deleted(tmp_path: Path) -> None:
    def use(api: Any) -> None:
        core = client.CoreV1Api(api)
        made = core.create_namespaced_pod("default", pod("a"))
        assert (made.metadata.name, made.spec.priority, made.status.phase) == ("a", 0, "Pending")
        core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"y": "z"}}})
        read = core.read_namespaced_pod("a", "default")
        assert read.metadata.labels == {"app": "x", "y": "z"}
        read.metadata.annotations = {"k": "v"}
        assert core.replace_namespaced_pod("a", "default", read).metadata.annotations == {"k": "v"}
        core.patch_namespaced_pod_status("a", "default", {"status": {"phase": "Running"}})
        listed = core.list_pod_for_all_namespaces(label_selector="app=x", field_selector="status.phase=Running")
        assert [item.metadata.name for item in listed.items] == ["a"]
        with pytest.raises(ApiException) as caught:
            core.replace_namespaced_pod("a", "default", made)
        assert (caught.value.status, caught.value.reason) == (409, "Conflict")
        core.delete_namespaced_pod("a", "default", grace_period_seconds=0)
        with pytest.raises(ApiException) as caught:
            core.read_namespaced_pod("a", "default")
        assert caught.value.status == 404

    await with_client(tmp_path, use)


async def test_claims_watches_evictions_and_bindings(tmp_path: Path) -> None:
    def use(api: Any) -> None:
        core, resource, policy = client.CoreV1Api(api), client.ResourceV1Api(api), client.PolicyV1Api(api)
        exactly = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
        claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [exactly]}}}
        made = resource.create_namespaced_resource_claim("default", claim)
        assert made.spec.devices.requests[0].exactly.count == 1
        version = made.metadata.resource_version
        core.create_namespaced_pod("default", pod("a"))
        target = client.V1ObjectReference(kind="Node", name="n1")
        binding = client.V1Binding(metadata=client.V1ObjectMeta(name="a"), target=target)
        core.create_namespaced_pod_binding("a", "default", binding, _preload_content=False)
        core.patch_namespaced_pod_status("a", "default", {"status": {"phase": "Running"}})
        eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="a"))
        core.create_namespaced_pod_eviction("a", "default", eviction)
        seen = []
        for event in watch.Watch().stream(
            core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=5
        ):
            seen.append((event["type"], event["object"].spec.node_name))
            if event["object"].metadata.deletion_timestamp:
                break
        assert seen[0] == ("ADDED", None)
        assert seen[-1] == ("MODIFIED", "n1")
        assert policy.list_namespaced_pod_disruption_budget("default").items == []
        with pytest.raises(ApiException) as caught:
            resource.create_device_class(
                {"metadata": {"name": "d"}, "spec": {"selectors": [{"cel": {"expression": "device.nope"}}]}}
            )
        assert caught.value.status == 422

    await with_client(tmp_path, use)


async def test_the_dynamic_client_discovers_and_applies(tmp_path: Path) -> None:
    def use(api: Any) -> None:
        assert client.VersionApi(api).get_code().major == "1"
        dynamic = DynamicClient(api)
        nodes = dynamic.resources.get(api_version="v1", kind="Node")
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"zone": "a"}}}
        made = nodes.server_side_apply(body=body, name="n1", field_manager="test")
        assert made.metadata.managedFields[0].manager == "test"
        claims = dynamic.resources.get(api_version="resource.k8s.io/v1", kind="ResourceClaim")
        assert claims.get(namespace="default").items == []
        access = client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(
                resource_attributes=client.V1ResourceAttributes(verb="list", resource="pods")
            )
        )
        assert client.AuthorizationV1Api(api).create_self_subject_access_review(access).status.allowed

    await with_client(tmp_path, use)
