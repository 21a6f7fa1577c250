"""A client that is not ours: lightkube against the embedded API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.models.resource_v1 import DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaimSpec
from lightkube.resources.core_v1 import Namespace, Pod
from lightkube.resources.resource_v1 import ResourceClaim

from support.apiserver_http import component


def small_pod(name: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, labels={"app": "x"}), spec=PodSpec(containers=[Container(name="c", image="i")])
    )


async def test_lightkube_works(tmp_path: Path) -> None:
    async with component(tmp_path):
        client: Any = AsyncClient(config=KubeConfig.from_file(tmp_path / "kubeconfig"), field_manager="test")
        made = await client.create(small_pod("a"))
        assert made.spec.priority == 0
        version = made.metadata.resourceVersion
        await client.patch(Pod, "a", {"metadata": {"labels": {"y": "z"}}})
        assert [pod.metadata.name async for pod in client.list(Pod, labels={"app": "x"}, namespace="*")] == ["a"]
        claim = ResourceClaim(
            metadata=ObjectMeta(name="c"),
            spec=ResourceClaimSpec(
                devices=DeviceClaim(
                    requests=[DeviceRequest(name="gpu", exactly=ExactDeviceRequest(deviceClassName="gpu"))]
                )
            ),
        )
        assert (await client.create(claim)).spec.devices.requests[0].exactly.count == 1
        applied = Pod(
            apiVersion="v1", kind="Pod", metadata=ObjectMeta(name="a", namespace="default", annotations={"k": "v"})
        )
        assert (await client.apply(applied)).metadata.annotations == {"k": "v"}
        with pytest.raises(ApiError) as caught:
            await client.create(small_pod("a"))
        assert (caught.value.status.code, caught.value.status.reason) == (409, "AlreadyExists")
        await client.delete(Pod, "a")
        async for event, pod in client.watch(Pod, resource_version=version):
            if event == "DELETED":
                assert pod.metadata.name == "a"
                break
        assert {ns.metadata.name async for ns in client.list(Namespace)} == {"default", "kube-system"}
        await client.close()
