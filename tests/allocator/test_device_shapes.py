"""The shapes of real drivers under examples/devices: which combinations fit, and who has to go for whom."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from earmark.dynamicresources.allocator import Allocator, NodeFacts
from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.jsonlines import allocate_line
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import Ledger
from earmark.kube.objects import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples" / "devices"


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("examples_devices_make", EXAMPLES / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


make = _load()
SHAPES: dict[str, Any] = make.shapes()


def picked(shape: Any, claim: Any, allocated: list[Any] | None = None) -> list[str] | None:
    """The devices that a claim gets, None if it does not fit."""
    answer = allocate_line(shape.problem("asked", claim, allocated))
    assert "error" not in answer, answer
    if answer["results"] is None:
        return None
    return [one["device"] for result in answer["results"] for one in result["devices"]["results"]]


def holding(shape: Any, name: str, claim: Any, allocated: list[Any]) -> list[Any] | None:
    """The claims that are allocated once this one is, too."""
    answer = allocate_line(shape.problem(name, claim, allocated), share_id=lambda: f"share-of-{name}")
    if answer["results"] is None:
        return None
    held = {"metadata": {"name": name, "namespace": "default", "uid": name}, **claim}
    return [*allocated, held | {"status": {"allocation": answer["results"][0]}}]


@pytest.mark.parametrize("name", SHAPES)
def test_the_file_is_what_the_script_writes(name: str) -> None:
    assert (EXAMPLES / f"{name}.yaml").read_text() == make.text(SHAPES[name])


def _claims() -> Iterator[Any]:
    for name, shape in SHAPES.items():
        for claim in shape.claims:
            yield pytest.param(name, claim, id=f"{name}-{claim}")


@pytest.mark.parametrize(("name", "claim"), list(_claims()))
def test_each_example_claim_ends_as_its_name_says(name: str, claim: str) -> None:
    shape = SHAPES[name]
    answer = allocate_line(shape.problem(claim, shape.claims[claim]))
    if claim.endswith("fails"):
        assert answer["error_kind"] == "fatal"
        assert "no such key: rdmaDevice" in answer["error"]
    else:
        assert "error" not in answer
        assert (answer["results"] is None) is claim.endswith(("do-not-fit", "does-not-fit"))


# --- MIG: S1 to S3 ---------------------------------------------------------------------------------------------------

COMBINATIONS = [
    ("h100", {"1g.10gb": 7}, True),
    ("h100", {"1g.10gb": 8}, False),
    ("h100", {"4g.40gb": 1, "3g.40gb": 1}, True),
    ("h100", {"3g.40gb": 2}, True),
    ("h100", {"4g.40gb": 2}, False),
    ("h100", {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1}, True),
    ("h100", {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}, False),
    ("h100", {"1g.20gb": 4}, True),
    ("h100", {"2g.20gb": 3, "1g.20gb": 1}, True),
    ("h100", {"1g.10gb+me": 2}, False),
    ("h100", {"1g.10gb+me": 1, "1g.10gb": 6}, True),
    ("h100", {"3g.40gb": 1, "1g.20gb": 2}, True),
    ("h100", {"4g.40gb": 1, "1g.10gb": 3}, True),
    ("a100", {"1g.5gb": 7}, True),
    ("a100", {"4g.20gb": 1, "3g.20gb": 1}, True),
    ("a100", {"3g.20gb": 2}, True),
    ("a100", {"3g.20gb": 2, "1g.5gb": 1}, False),
    ("a100", {"1g.10gb": 4}, True),
    ("a100", {"2g.10gb": 3, "1g.5gb": 1}, True),
    ("a100", {"1g.5gb+me": 2}, False),
    ("a100", {"4g.20gb": 1, "2g.10gb": 1, "1g.5gb": 1}, True),
    ("a100", {"3g.20gb": 1, "1g.5gb": 4}, True),
    ("b200", {"3g.90gb": 2}, True),
    ("b200", {"1g.23gb": 7}, True),
    ("b200", {"4g.90gb": 2}, False),
]


@pytest.mark.parametrize(("name", "wanted", "fits"), COMBINATIONS, ids=lambda value: str(value))
def test_which_partitions_of_one_gpu_fit_together(name: str, wanted: dict[str, int], fits: bool) -> None:
    """In one claim in this order, and in the opposite one: a search finds the placements."""
    for order in (wanted, dict(reversed(wanted.items()))):
        found = picked(SHAPES[name], make.partitions(order))
        assert (found is not None) is fits
        if found is not None:
            assert len(found) == sum(wanted.values())
            assert len({device.split("-")[1] for device in found}) == 1


def test_the_last_partition_takes_the_place_that_is_left() -> None:
    wanted = {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 1}
    assert picked(SHAPES["h100"], make.partitions(wanted)) == [
        "gpu-0-mig-4g40gb-5-0", "gpu-0-mig-2g20gb-14-4", "gpu-0-mig-1g10gb-19-6",
    ]  # fmt: skip


def test_a_slice_has_twenty_six_devices_a_gpu_and_counts_all_of_what_they_take() -> None:
    counters, *gpus = SHAPES["h100"].slices
    assert [len(slice_["spec"]["devices"]) for slice_ in gpus] == [26, 26]
    assert len(counters["spec"]["sharedCounters"][0]["counters"]) == 15
    spec = SHAPES["a100"].slices[1]["spec"]
    assert len(spec["devices"]) == 25


def victims(wanted: str, started: Sequence[int]) -> list[int]:
    """Who has to go of seven 1g.10gb pods at 0 to 6: all are removed, then spared in order of their start."""
    shape = make.mig(make.H100, 1)
    inventory = Inventory.of(msgspec.convert(shape.slices, list[ResourceSlice]),
                             msgspec.convert(shape.classes, list[DeviceClass]))  # fmt: skip
    node = NodeFacts(shape.node)
    claim = msgspec.convert({"metadata": {"name": "high"}, **make.partitions({wanted: 1})}, ResourceClaim)
    problem = Allocator(inventory, gates.DEFAULT_FEATURES).prepare([claim])

    def held(place: int) -> AllocationResult:
        result = {"request": "p0", "driver": make.NVIDIA, "pool": shape.node, "device": f"gpu-0-mig-1g10gb-19-{place}"}
        return msgspec.convert({"devices": {"results": [result]}}, AllocationResult)

    def fits(ledger: Ledger) -> bool:
        return problem.fits_many([(node, [ledger])], expired=lambda: False) == [True]

    ledger = Ledger()
    for place in range(7):
        ledger = ledger.charge(str(place), held(place))
    assert not fits(ledger)
    ledger = ledger.release_all([str(place) for place in range(7)])
    assert fits(ledger)
    gone = []
    for place in started:
        spared = ledger.charge(str(place), held(place))
        if fits(spared):
            ledger = spared
        else:
            gone.append(place)
    return sorted(gone)


@pytest.mark.parametrize("started", [range(7), range(6, -1, -1), (3, 0, 5, 1, 6, 2, 4)], ids=str)
def test_a_4g_partition_costs_the_four_pods_at_its_only_place(started: Sequence[int]) -> None:
    assert victims("4g.40gb", started) == [0, 1, 2, 3]


def test_how_many_a_3g_partition_costs_follows_from_who_started_first() -> None:
    """The reprieve is greedy and not minimal, by design."""
    assert victims("3g.40gb", range(7)) == [4, 5, 6]
    assert victims("3g.40gb", (4, 5, 6, 0, 1, 2, 3)) == [0, 1, 2, 3]


# --- partitionable, TPU, AMD: S4 to S6 -------------------------------------------------------------------------------


def fill(shape: Any, claim: Any) -> list[Any]:
    """Allocate equal claims until no more fits."""
    allocated: list[Any] = []
    while (more := holding(shape, f"low-{len(allocated)}", claim, allocated)) is not None:
        allocated = more
    return allocated


def needed(shape: Any, allocated: list[Any], wanted: Any) -> int:
    """How many of the claims have to go, spared in their order."""
    assert picked(shape, wanted, allocated) is None
    gone, kept = 0, []
    for claim in allocated:
        if picked(shape, wanted, [*kept, claim]) is None:
            gone += 1
        else:
            kept.append(claim)
    return gone


def test_the_whole_gpu_takes_all_four_partitions() -> None:
    shape = SHAPES["partitionable"]
    low = fill(shape, shape.claims["any"])
    assert [one["status"]["allocation"]["devices"]["results"][0]["device"] for one in low] == [
        f"gpu-0-partition-{k}" for k in range(4)
    ]
    assert needed(shape, low, shape.claims["whole"]) == 4


def test_eight_shares_of_a_partition_mode_all_go_for_another_mode() -> None:
    """The counter is freed only with the last share."""
    shape = SHAPES["amd"]
    low = fill(shape, shape.claims["one-partition"])
    assert len(low) == 8
    assert needed(shape, low, shape.claims["whole-gpu"]) == 8
    assert picked(shape, shape.claims["whole-gpu"], low[:1]) is None


def test_topologies_over_several_hosts_are_no_nodes_own() -> None:
    shape = SHAPES["tpu-hosts"]
    assert picked(shape, shape.claims["tpus-4"]) == ["tpu-2x2-1"]
    assert picked(shape, shape.claims["tpus-8"]) == ["tpu-2x4-1"]
    inventory = Inventory.of(msgspec.convert(shape.slices, list[ResourceSlice]))
    owners = {name: inventory.node_of(make.TPU_HOSTS, "tpu-pool", name) for name in ("tpu-2x2-1", "tpu-2x4-1")}
    assert owners == {"tpu-2x2-1": "node-1", "tpu-2x4-1": None}


def test_a_topology_that_others_take_apart_does_not_fit() -> None:
    shape = SHAPES["tpu-hosts"]
    held = holding(shape, "small", shape.claims["tpus-4"], [])
    assert held is not None
    assert picked(shape, shape.claims["tpus-8"], held) is None


# --- network, CPUs, mixed: S7 to S10 ---------------------------------------------------------------------------------


def test_a_gpu_and_a_nic_come_from_two_pools_of_the_node() -> None:
    shape = SHAPES["dranet"]
    answer = allocate_line(shape.problem("both", shape.claims["gpu-and-nic"]))
    (result,) = answer["results"]
    assert [one["driver"] for one in result["devices"]["results"]] == ["gpu.nvidia.com", "dra.net"]
    (term,) = result["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"][0]["values"] == [shape.node]


def test_the_nics_of_a_numa_node_are_exactly_two() -> None:
    shape = SHAPES["dranet"]
    assert picked(shape, shape.claims["nics-of-numa-0"]) == ["pci-0101-00-00-0", "pci-0102-00-00-0"]


def test_six_claims_of_ten_cpus_share_a_group_of_64() -> None:
    shape = SHAPES["cpu"]
    assert len(fill(shape, shape.claims["ten-of-each"])) == 6


def test_threads_of_a_core_are_32_apart() -> None:
    shape = SHAPES["cpu-single"]
    assert len(shape.slices[0]["spec"]["devices"]) == 128
    assert picked(shape, shape.claims["both-threads-of-a-core"]) == ["cpudev000", "cpudev032"]


def test_the_second_alternative_is_named_in_the_result() -> None:
    shape = SHAPES["example-driver"]
    answer = allocate_line(shape.problem("list", shape.claims["sixteen-else-two"]))
    assert {one["request"] for one in answer["results"][0]["devices"]["results"]} == {"gpus/few"}


def test_eight_eighths_fill_the_mixed_node_and_one_goes_for_another() -> None:
    shape = SHAPES["mixed"]
    low = fill(shape, shape.claims["an-eighth"])
    gpus = [one["status"]["allocation"]["devices"]["results"][0]["device"] for one in low]
    assert gpus == [f"gpu-{k}" for k in range(8)]
    assert needed(shape, low, shape.claims["an-eighth"]) == 1
    assert needed(shape, low, shape.claims["two-gpus-of-one-socket"]) == 2
