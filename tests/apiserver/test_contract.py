"""The API seam: what holds in the same process holds over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from earmark.apiserver.local import LocalApi
from earmark.apiserver.registry import Registry
from earmark.apiserver.storage import MemoryStore
from earmark.kube import objects
from earmark.kube.api import ApiError, ApiUnavailable, EventType, PatchType
from earmark.kube.http import HttpApi
from earmark.kube.informer import Informer
from earmark.kube.kubeconfig import KubeconfigError
from earmark.kube.resources import BY_KIND
from earmark.runtime.clock import SystemClock
from earmark.runtime.ids import SystemIds
from support.apiserver_http import component, served
from support.apiserver_registry import allocation, pod

Api = LocalApi | HttpApi


@pytest.fixture(params=["local", "https"])
async def api(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    if request.param == "local":
        clock = SystemClock()
        yield LocalApi(Registry(MemoryStore(), clock, SystemIds().uuid), clock)
        return
    async with served(tmp_path) as client:
        yield client


def simple_pod(name: str, namespace: str = "default") -> objects.Pod:
    return objects.Pod(
        metadata=objects.ObjectMeta(name=name, namespace=namespace, labels={"app": name}),
        spec=objects.PodSpec(containers=(objects.Container(name="c", image="i"),)),
    )


async def test_create_get_list(api: Api) -> None:
    made = await api.create(simple_pod("a"))
    await api.create(simple_pod("b"))
    assert made.metadata.uid
    assert made.spec.priority == 0
    assert await api.get(objects.Pod, "a", "default") == made
    everything = await api.list(objects.Pod)
    assert [item.metadata.name for item in everything.items] == ["a", "b"]
    assert int(everything.resource_version) >= int(made.metadata.resource_version)
    assert (await api.list(objects.Pod, "default", label_selector="app=a")).items == (made,)
    assert (await api.list(objects.Pod, field_selector="metadata.name=b")).items[0].metadata.name == "b"
    assert (await api.list(objects.Pod, "kube-system")).items == ()


async def test_generated_names(api: Api) -> None:
    made = await api.create(
        objects.ResourceClaim(
            metadata=objects.ObjectMeta(generate_name="p-gpu-", namespace="default"),
            spec=objects.ResourceClaimSpec(
                devices=objects.DeviceClaim(
                    requests=(
                        objects.DeviceRequest(name="r", exactly=objects.ExactDeviceRequest(device_class_name="x")),
                    )
                )
            ),
        )
    )
    assert made.metadata.name.startswith("p-gpu-")
    assert made.spec.devices.requests[0].exactly is not None
    assert made.spec.devices.requests[0].exactly.count == 1


async def test_patches_and_their_conditions(api: Api) -> None:
    made = await api.create(simple_pod("a"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    changed = await api.patch(
        objects.Pod, "a", "default",
        {"metadata": {"annotations": {"earmark.dev/nomination": "{}"}},
         "status": {"nominatedNodeName": "n1", "conditions": [condition]}},
        subresource="status", patch_type=PatchType.STRATEGIC,
    )  # fmt: skip
    assert changed.status.nominated_node_name == "n1"
    assert changed.metadata.annotations == {"earmark.dev/nomination": "{}"}
    assert changed.status.conditions[0].reason == "Unschedulable"
    labelled = await api.patch(
        objects.Pod, "a", "default", [{"op": "add", "path": "/metadata/labels/x", "value": "y"}], patch_type=PatchType.JSON
    )  # fmt: skip
    assert labelled.metadata.labels == {"app": "a", "x": "y"}
    stale = {"metadata": {"resourceVersion": made.metadata.resource_version, "labels": {"z": "1"}}}
    with pytest.raises(ApiError) as caught:
        await api.patch(objects.Pod, "a", "default", stale)
    assert caught.value.conflict


async def test_a_claim_is_taken_in_two_writes(api: Api) -> None:
    await api.create_raw(
        BY_KIND["ResourceClaim"], "default",
        {"metadata": {"name": "c"},
         "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}},
    )  # fmt: skip
    claim = await api.get(objects.ResourceClaim, "c", "default")
    finalizer = ["resource.kubernetes.io/delete-protection"]
    claim = await api.patch(
        objects.ResourceClaim, "c", "default",
        {"metadata": {"resourceVersion": claim.metadata.resource_version, "finalizers": finalizer}},
    )  # fmt: skip
    reserved = [{"resource": "pods", "name": "p", "uid": "u"}]
    claim = await api.patch(
        objects.ResourceClaim, "c", "default",
        {"metadata": {"resourceVersion": claim.metadata.resource_version},
         "status": {"allocation": allocation(), "reservedFor": reserved}}, subresource="status",
    )  # fmt: skip
    assert claim.status.allocation is not None
    assert claim.status.reserved_for[0].uid == "u"
    with pytest.raises(ApiError) as caught:
        await api.patch(objects.ResourceClaim, "c", "default", {"status": {"allocation": None}}, subresource="status")
    assert caught.value.status == 422
    assert caught.value.causes == (
        ("status.reservedFor", "Forbidden: may not be specified when `allocated` is not set"),
    )


async def test_bind_and_delete(api: Api) -> None:
    made = await api.create(simple_pod("a"))
    await api.bind("default", "a", made.metadata.uid, "n1")
    assert (await api.get(objects.Pod, "a", "default")).spec.node_name == "n1"
    with pytest.raises(ApiError) as caught:
        await api.bind("default", "a", made.metadata.uid, "n2")
    assert caught.value.conflict
    with pytest.raises(ApiError) as caught:
        await api.delete(objects.Pod, "a", "default", uid="other")
    assert caught.value.conflict
    await api.delete(objects.Pod, "a", "default", uid=made.metadata.uid)
    assert (await api.get(objects.Pod, "a", "default")).metadata.deletion_grace_period_seconds == 30
    await api.delete(objects.Pod, "a", "default", grace_period_seconds=0)
    with pytest.raises(ApiError) as caught:
        await api.get(objects.Pod, "a", "default")
    assert caught.value.not_found


async def test_watch_and_410(api: Api) -> None:
    start = (await api.list(objects.Pod)).resource_version
    seen: list[tuple[EventType, str]] = []
    async with asyncio.timeout(10):
        async with aclosing(api.watch(objects.Pod, resource_version=start)) as stream:  # type: ignore[type-var]
            made = await api.create(simple_pod("a"))
            await api.patch(objects.Pod, "a", "default", {"metadata": {"labels": {"x": "y"}}})
            await api.delete(objects.Pod, "a", "default", uid=made.metadata.uid)
            async for event in stream:
                seen.append((event.type, event.object.metadata.name))
                if event.type is EventType.DELETED:
                    break
        assert seen == [(EventType.ADDED, "a"), (EventType.MODIFIED, "a"), (EventType.DELETED, "a")]
        with pytest.raises(ApiError) as caught:
            await anext(api.watch(objects.Pod, resource_version="999999"))
        assert caught.value.gone


async def test_raw_objects_keep_what_structs_do_not_know(api: Api) -> None:
    data = pod("a", hostname="kept")
    resource = BY_KIND["Pod"]
    made = msgspec.json.decode(await api.create_raw(resource, "", data))
    assert made["spec"]["hostname"] == "kept"
    made["metadata"]["labels"] = {"x": "y"}
    assert msgspec.json.decode(await api.update_raw(resource, "default", "a", made))["metadata"]["labels"] == {"x": "y"}
    with pytest.raises(ApiError) as caught:
        await api.create_raw(resource, "default", pod("b", nope=1))
    assert (caught.value.status, caught.value.causes) == (400, (("spec.nope", "unknown field"),))


# --- over HTTPS only -------------------------------------------------------------------------------------------------


async def test_a_restart_keeps_objects_port_token_and_certificate(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        made = await api.create(simple_pod("a"))
        config = (tmp_path / "kubeconfig").read_text()
    async with HttpApi.from_kubeconfig(tmp_path / "kubeconfig") as api:
        with pytest.raises(ApiUnavailable):
            await api.get(objects.Pod, "a", "default")
        async with component(tmp_path):
            assert (tmp_path / "kubeconfig").read_text() == config
            assert await api.get(objects.Pod, "a", "default") == made


async def test_secrets_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    async with component(tmp_path):
        for path in (tmp_path / "kubeconfig", *(tmp_path / "apiserver").rglob("*")):
            if path.is_file() and path.name not in ("port", "store.db-wal", "store.db-shm"):
                assert path.stat().st_mode & 0o077 == 0, path


async def test_an_informer_survives_a_restart_of_the_server(tmp_path: Path) -> None:
    async with component(tmp_path), HttpApi.from_kubeconfig(tmp_path / "kubeconfig") as writer:
        await writer.create(simple_pod("a"))
    api = HttpApi.from_kubeconfig(tmp_path / "kubeconfig")
    async with api:
        informer = Informer(api, objects.Pod, SystemClock())
        seen: asyncio.Queue[str] = asyncio.Queue()
        informer.add_handler(lambda event: seen.put_nowait(f"{event.type.value} {event.object.metadata.name}"))
        task = asyncio.create_task(informer.run())
        async with asyncio.timeout(20):
            async with component(tmp_path):
                assert await seen.get() == "ADDED a"
            async with component(tmp_path):
                await api.create(simple_pod("b"))
                assert await seen.get() == "ADDED b"
        task.cancel()


async def test_a_stranger_is_refused(tmp_path: Path) -> None:
    async with component(tmp_path):
        path = tmp_path / "kubeconfig"
        token = (tmp_path / "apiserver" / "token").read_text()
        path.write_text(path.read_text().replace(token, "guessed"))
        async with HttpApi.from_kubeconfig(path) as api:
            with pytest.raises(ApiError) as caught:
                await api.list(objects.Pod)
        assert caught.value.status == 401


@pytest.mark.parametrize(
    "text", ["", "a: [", "clusters: 3", "apiVersion: v1", "clusters: []\ncontexts: []\ncurrent-context: x\n"]
)
def test_an_unusable_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match="config: not a usable kubeconfig"):
        HttpApi.from_kubeconfig(path)
