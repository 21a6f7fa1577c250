"""What is said of each device: which part it fails, who has it, why that stays."""

from __future__ import annotations

import pytest

from earmark.dynamicresources.explaining import Explainer, Kind, Obstacle
from earmark.dynamicresources.selectorparts import SelectorParts
from earmark.kube import objects
from support.dra_cluster import Cluster, exactly


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_slice("n1", ["gpu-0"])
    return made


def look(cluster: Cluster, name: str = "p", node: str = "n1") -> list[Obstacle]:
    pod = cluster.world.pods.get(f"uid-{name}")
    assert pod is not None
    return list(Explainer(cluster.world, pod, preemption=cluster.settings.preemption).node(node))


def the_only(cluster: Cluster) -> Obstacle:
    (found,) = look(cluster)
    return found


@pytest.mark.kep("R57")
def test_an_equal_priority_stays(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"], priority=100)
    cluster.pending("p", priority=100)
    found = the_only(cluster)
    assert (found.kind, found.claim, [pod.name for pod in found.pods]) == (Kind.ALLOCATED, "default/v-claim", ["v"])
    assert found.stays == "the priority of v (100) is equal to that of this pod (100)"


@pytest.mark.kep("R57", "E33")
def test_a_claim_that_is_shared_with_a_higher_pod_stays(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"], priority=0)
    cluster.add_pod("w", ["v-claim"], node="n1", priority=1000)
    cluster.reserve_for("v-claim", ["v", "w"])
    cluster.pending("p", priority=100)
    assert the_only(cluster).stays == (
        "the claim is shared with a pod that stays: the priority of w (1000) is higher than that of this pod (100)"
    )


def test_a_lower_pod_does_not_stay(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"], priority=0)
    cluster.pending("p", priority=100)
    assert the_only(cluster).stays == ""


@pytest.mark.kep("E27")
def test_a_network_device_stays(cluster: Cluster) -> None:
    cluster.add_slice(None, ["net-0"], pool="net")
    cluster.add_claim("v-claim")
    cluster.add_pod("v", ["v-claim"], node="n1")
    cluster.allocate("v-claim", ["net-0"], ["v"], pool="net")
    cluster.pending("p", priority=100)
    found = next(item for item in look(cluster) if item.device.endswith("net-0"))
    assert found.stays == "the claim has net/net-0, which belongs to no single node (a network device)"


def test_without_the_gate_nothing_is_preempted() -> None:
    cluster = Cluster(gate=False)
    cluster.add_slice("n1", ["gpu-0"])
    cluster.running("v", ["gpu-0"], priority=0)
    cluster.pending("p", priority=100)
    assert the_only(cluster).stays == "the gate DRAPreemption is off"


def test_the_failing_part_of_a_selector_is_named() -> None:
    device = objects.Device(
        name="gpu-0",
        attributes={"model": objects.DeviceAttribute(string="a100"), "gen": objects.DeviceAttribute(int_=8)},
    )
    attributes = 'device.attributes["gpu.example.com"]'
    right, wrong = f"{attributes}.gen >= 8", f'{attributes}.model == "h100"'
    failing_part = SelectorParts().failing
    assert failing_part(right, "gpu.example.com", device) == ""
    assert failing_part(f"{right} && {wrong}", "gpu.example.com", device) == wrong
    assert "no such key" in failing_part(f"{right} && {attributes}.size > 1", "gpu.example.com", device)


def test_devices_that_look_alike_share_an_answer_and_others_do_not() -> None:
    failing, text = SelectorParts().failing, 'device.attributes["d"].model == "h100"'

    def device(model: str, uuid: str) -> objects.Device:
        values = {"model": objects.DeviceAttribute(string=model), "uuid": objects.DeviceAttribute(string=uuid)}
        return objects.Device(name=uuid, attributes=values)

    assert [
        failing(text, "d", device(model, uuid)) for model, uuid in [("a100", "1"), ("h100", "2"), ("a100", "3")]
    ] == [
        text,
        "",
        text,
    ]
    broken = objects.Device(
        name="x", attributes={**device("h100", "4").attributes, "v": objects.DeviceAttribute(version="no version")}
    )
    assert failing(text, "d", broken) != ""


def test_a_request_s_selector_that_fails(cluster: Cluster) -> None:
    expression = 'device.driver == "other"'
    selector = objects.DeviceSelector(cel=objects.CELDeviceSelector(expression=expression))
    cluster.add_claim("c", request=exactly(selectors=(selector,)))
    cluster.add_pod("p", ["c"])
    assert [(item.kind, item.detail) for item in look(cluster)] == [(Kind.SELECTOR, expression)]


def test_a_taint_that_is_not_tolerated() -> None:
    cluster = Cluster()
    taint = objects.DeviceTaint(key="broken", value="yes", effect="NoSchedule")
    cluster.add_slice("n1", [objects.Device(name="gpu-0", taints=(taint,))])
    cluster.pending("p")
    assert [(item.kind, item.detail) for item in look(cluster)] == [(Kind.TAINT, "broken=yes:NoSchedule")]


def test_a_partition_is_blocked_by_its_sibling() -> None:
    cluster = Cluster()
    use = objects.DeviceCounterConsumption(counter_set="set", counters={"memory": objects.Counter(value="40Gi")})
    whole, half = (objects.Device(name=name, consumes_counters=(use,)) for name in ("whole", "half"))
    cluster.add_slice("n1", [whole, half], counters={"memory": "60Gi"})
    cluster.running("v", ["half"], priority=0)
    cluster.pending("p", priority=100)
    found = {item.device.rpartition("/")[2]: item for item in look(cluster)}
    assert (found["whole"].kind, found["whole"].claim) == (Kind.PARTITION, "default/v-claim")
    assert found["whole"].detail == "counter set/memory, of which 40Gi is needed"


@pytest.mark.kep("E102")
def test_what_is_held_for_another_pod_is_told_with_its_name(cluster: Cluster) -> None:
    cluster.running("v", ["gpu-0"], priority=0)
    cluster.pending("first", priority=1000)
    cluster.nominate("first", "n1", ["v"])
    cluster.pending("p", priority=100)
    found = the_only(cluster)
    assert (found.kind, [pod.name for pod in found.pods], found.priority) == (Kind.HELD, ["first"], 1000)


def test_a_free_device_has_no_obstacle(cluster: Cluster) -> None:
    cluster.pending("p", count=2)
    assert the_only(cluster).kind is Kind.FREE
