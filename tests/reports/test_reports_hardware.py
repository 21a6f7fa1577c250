"""R27, R63: slices of known hardware are accepted and give what the hardware gives; broken ones are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from earmark.apiserver.errors import StatusError
from earmark.dynamicresources.allocator.jsonlines import allocate_line
from support.apiserver_registry import Cluster, causes

DRIVER = "gpu.nvidia.com"
CAPACITIES = ("memory", "multiprocessors", "copy-engines", "decoders", "jpeg-engines", "ofa-engines")
# One H100 with 80 GB: what each profile takes of CAPACITIES, how many memory slices, and where it may begin.
WHOLE = ("81152Mi", 132, 8, 7, 7, 1)
PROFILES: dict[str, tuple[tuple[str | int, ...], int, Sequence[int]]] = {
    "1g.10gb": (("9984Mi", 16, 1, 1, 1, 0), 1, range(7)),
    "1g.10gb+me": (("9984Mi", 16, 1, 1, 1, 1), 1, range(7)),
    "1g.20gb": (("20096Mi", 26, 1, 1, 1, 0), 2, (0, 2, 4, 6)),
    "2g.20gb": (("20096Mi", 32, 2, 2, 2, 0), 2, (0, 2, 4)),
    "3g.40gb": (("40448Mi", 60, 3, 3, 3, 0), 4, (0, 4)),
    "4g.40gb": (("40448Mi", 64, 4, 4, 4, 0), 4, (0,)),
    "7g.80gb": (WHOLE, 8, (0,)),
}


def slice_of(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2},
            **spec,
        },
    }


def h100() -> list[dict[str, Any]]:
    """Return the slices of a node with one such device: its counters, and every way to cut it."""
    offered = dict(zip(CAPACITIES, map(str, WHOLE), strict=True)) | {f"memory-slice-{n}": "1" for n in range(8)}
    counter_set = {"name": "gpu-0-counter-set", "counters": {name: {"value": value} for name, value in offered.items()}}
    devices = []
    for profile, (amounts, width, placements) in PROFILES.items():
        for place in placements:
            taken = {name: str(amount) for name, amount in zip(CAPACITIES, amounts, strict=True) if amount}
            taken |= {f"memory-slice-{n}": "1" for n in range(place, place + width)}
            counters = {name: {"value": value} for name, value in taken.items()}
            devices.append(
                {
                    "name": f"gpu-0-mig-{profile.replace('.', '').replace('+', '-')}-{place}",
                    "attributes": {"type": {"string": "mig"}, "profile": {"string": profile}},
                    "consumesCounters": [{"counterSet": "gpu-0-counter-set", "counters": counters}],
                }
            )
    return [slice_of("counters", sharedCounters=[counter_set]), slice_of("partitions", devices=devices)]


def fits(*wanted: str) -> bool:
    """Whether partitions of these profiles fit one device."""
    requests = [
        {
            "name": f"r{index}",
            "exactly": {
                "deviceClassName": "mig",
                "allocationMode": "ExactCount",
                "count": 1,
                "selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].profile == '{profile}'"}}],
            },
        }
        for index, profile in enumerate(wanted)
    ]
    meta = {"name": "c", "namespace": "default", "uid": "c"}
    answer = allocate_line(
        {
            "node": {"metadata": {"name": "n1"}},
            "slices": h100(),
            "classes": [{"metadata": {"name": "mig"}, "spec": {}}],
            "claims": [{"metadata": meta, "spec": {"devices": {"requests": requests}}}],
        }
    )
    assert "error" not in answer
    return answer["results"] is not None


@pytest.mark.kep("R63")
def test_r63_slices_of_a_device_with_partitions_are_accepted() -> None:
    cluster = Cluster()
    for manifest in h100():
        assert cluster.create(manifest)["spec"]["driver"] == DRIVER


@pytest.mark.kep("R63")
@pytest.mark.parametrize(
    ("wanted", "possible"),
    [
        (["1g.10gb"] * 7, True),
        (["1g.10gb"] * 8, False),
        (["4g.40gb", "3g.40gb"], True),
        (["3g.40gb"] * 2, True),
        (["4g.40gb"] * 2, False),
        (["4g.40gb", "2g.20gb", "1g.10gb"], True),
        (["4g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"], False),
        (["1g.20gb"] * 4, True),
        (["2g.20gb"] * 3 + ["1g.20gb"], True),
        (["1g.10gb+me"] * 2, False),
        (["1g.10gb+me"] + ["1g.10gb"] * 6, True),
        (["3g.40gb", "1g.20gb", "1g.20gb"], True),
        (["4g.40gb"] + ["1g.10gb"] * 3, True),
        (["7g.80gb", "1g.10gb"], False),
    ],
)
def test_r63_partitions_fit_as_on_the_hardware(wanted: list[str], possible: bool) -> None:
    assert fits(*wanted) is possible


@pytest.mark.kep("R27")
def test_r27_a_counter_set_without_counters_is_refused_by_its_field_and_the_rest_is_taken() -> None:
    cluster = Cluster()
    broken, partitions = slice_of("counters", sharedCounters=[{"name": "x"}]), h100()[1]
    with pytest.raises(StatusError) as refusal:
        cluster.create(broken)
    assert [field for field, _ in causes(refusal.value)] == ["spec.sharedCounters[0].counters"]
    assert cluster.create(partitions)["metadata"]["name"] == "partitions"


@pytest.mark.kep("R03")
def test_r03_list_attributes_are_kept_by_the_api() -> None:
    # Whether the scheduler reads them is its gate; without it they match nothing.
    devices = [{"name": "a", "attributes": {"numa": {"ints": [1, 2]}}}]
    assert Cluster().create(slice_of("lists", devices=devices))["spec"]["devices"] == devices
