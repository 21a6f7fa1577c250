"""Device shapes of real drivers as manifests: writes one YAML file a shape beside this script.

    python examples/devices/make.py              write the files again
    python examples/devices/make.py lines SHAPE  print each claim of a shape as a problem for `earmark allocate`

The numbers are facts that drivers and cloud providers publish; names, UUIDs and addresses are made up here.
"""

from __future__ import annotations

import json
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

HERE = Path(__file__).resolve().parent
NODE = "node-a"


@dataclass
class Shape:
    """What a driver publishes for one node, and claims that can be made of it."""

    name: str
    about: str
    slices: list[Json]
    classes: list[Json]
    claims: dict[str, Json] = field(default_factory=dict)
    node: str = NODE
    labels: dict[str, str] = field(default_factory=dict)

    def manifests(self) -> list[Json]:
        """All objects, as they would be applied to a cluster."""
        api = {"apiVersion": "resource.k8s.io/v1"}
        claims = [
            {**api, "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, **claim}
            for name, claim in self.claims.items()
        ]
        return [
            *({**api, "kind": "DeviceClass", **one} for one in self.classes),
            *({**api, "kind": "ResourceSlice", **one} for one in self.slices),
            *claims,
        ]

    def problem(self, name: str, claim: Json, allocated: list[Json] | None = None) -> Json:
        """One line for `earmark allocate`. allocated: claims with status that hold devices already."""
        return {
            "id": f"{self.name}/{name}",
            "node": {"metadata": {"name": self.node, "labels": self.labels}},
            "slices": self.slices,
            "classes": self.classes,
            "claims": [{"metadata": {"name": name, "namespace": "default", "uid": name}, **claim}],
            "allocated": allocated or [],
        }


# --- pieces ----------------------------------------------------------------------------------------------------------


def value(content: Any) -> Json:
    """An attribute. Versions are given as ("version", text)."""
    if isinstance(content, tuple):
        return {content[0]: content[1]}
    if isinstance(content, list):
        return {"strings": content}
    kind = "bool" if isinstance(content, bool) else "int" if isinstance(content, int) else "string"
    return {kind: content}


def device(name: str, attributes: Json, capacity: Json | None = None, **more: Any) -> Json:
    """A device; amounts are texts, or whole capacities with a policy."""
    made: Json = {"name": name, "attributes": {key: value(content) for key, content in attributes.items()}}
    if capacity:
        made["capacity"] = {
            key: amount if isinstance(amount, dict) else {"value": amount} for key, amount in capacity.items()
        }
    return made | more


def counters(amounts: Json) -> Json:
    """Counters of a set, or what a device takes of one."""
    return {name: {"value": str(amount)} for name, amount in amounts.items()}


def takes(counter_set: str, amounts: Json, **more: Any) -> list[Json]:
    """What a device consumes of a counter set."""
    return [{"counterSet": counter_set, "counters": counters(amounts), **more}]


def slices_of(driver: str, contents: list[Json], *, pool: str = NODE, generation: int = 1, **where: Any) -> list[Json]:
    """The slices of one pool: contents are devices or sharedCounters."""
    where = where or {"nodeName": NODE}
    count = len(contents)
    return [
        {
            "metadata": {"name": f"{pool}-{driver}-{number}"},
            "spec": {
                "driver": driver,
                "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
                **where,
                **content,
            },
        }
        for number, content in enumerate(contents)
    ]


def device_class(name: str, *expressions: str) -> Json:
    """A DeviceClass with selectors."""
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": text}} for text in expressions]}}


def request(name: str, class_name: str, *expressions: str, count: int = 1, **more: Any) -> Json:
    """An exact request. `all_devices=True` asks for all, `amounts` for capacity."""
    exactly: Json = {"deviceClassName": class_name}
    if more.pop("all_devices", False):
        exactly["allocationMode"] = "All"
    else:
        exactly |= {"allocationMode": "ExactCount", "count": count}
    if expressions:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in expressions]
    if "amounts" in more:
        exactly["capacity"] = {"requests": more.pop("amounts")}
    return {"name": name, "exactly": exactly | more}


def claim(*requests: Json, constraints: list[Json] | None = None) -> Json:
    """A claim's spec."""
    devices: Json = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = constraints
    return {"spec": {"devices": devices}}


def unique(prefix: str, *parts: object) -> str:
    """A UUID that is the same in every run."""
    return prefix + str(uuid.uuid5(uuid.NAMESPACE_DNS, "/".join(map(str, parts)) + ".earmark.example"))


# --- NVIDIA with MIG -------------------------------------------------------------------------------------------------

NVIDIA = "gpu.nvidia.com"
_AMOUNTS = ("memory", "multiprocessors", "copy-engines", "decoders", "encoders", "jpeg-engines", "ofa-engines")
_CAMEL = ("memory", "multiprocessors", "copyEngines", "decoders", "encoders", "jpegEngines", "ofaEngines")

Profile = tuple[str, int, str, int, int, int, int, int, int, tuple[int, ...]]
"""Name, id, memory, multiprocessors, copy engines, decoders, JPEG engines, OFA engines, memory slices, placements."""


@dataclass(frozen=True)
class Mig:
    """One GPU model: what a whole GPU has, and its profiles."""

    name: str
    product: str
    architecture: str
    cuda: str
    whole: tuple[Any, ...]
    profiles: tuple[Profile, ...]


H100 = Mig("h100", "NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", ("81152Mi", 132, 8, 7, 0, 7, 1), (
    ("1g.10gb", 19, "9984Mi", 16, 1, 1, 1, 0, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.10gb+me", 20, "9984Mi", 16, 1, 1, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.20gb", 15, "20096Mi", 26, 1, 1, 1, 0, 2, (0, 2, 4, 6)),
    ("2g.20gb", 14, "20096Mi", 32, 2, 2, 2, 0, 2, (0, 2, 4)),
    ("3g.40gb", 9, "40448Mi", 60, 3, 3, 3, 0, 4, (0, 4)),
    ("4g.40gb", 5, "40448Mi", 64, 4, 4, 4, 0, 4, (0,)),
    ("7g.80gb", 0, "81152Mi", 132, 8, 7, 7, 1, 8, (0,)),
))  # fmt: skip

A100 = Mig("a100", "NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", ("40320Mi", 98, 7, 5, 0, 1, 1), (
    ("1g.5gb", 19, "4864Mi", 14, 1, 0, 0, 0, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.5gb+me", 20, "4864Mi", 14, 1, 1, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.10gb", 15, "9984Mi", 14, 1, 1, 0, 0, 2, (0, 2, 4, 6)),
    ("2g.10gb", 14, "9984Mi", 28, 2, 1, 0, 0, 2, (0, 2, 4)),
    ("3g.20gb", 9, "20096Mi", 42, 3, 2, 0, 0, 4, (0, 4)),
    ("4g.20gb", 5, "20096Mi", 56, 4, 2, 0, 0, 4, (0,)),
    ("7g.40gb", 0, "40320Mi", 98, 7, 5, 1, 1, 8, (0,)),
))  # fmt: skip

B200 = Mig("b200", "NVIDIA B200", "Blackwell", "10.0.0", ("182784Mi", 148, 16, 7, 0, 7, 1), (
    ("1g.23gb", 19, "20992Mi", 18, 2, 1, 1, 0, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.23gb+me", 20, "20992Mi", 18, 2, 1, 1, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    ("1g.45gb", 15, "45312Mi", 30, 2, 1, 1, 0, 2, (0, 2, 4, 6)),
    ("2g.45gb", 14, "45312Mi", 36, 4, 2, 2, 0, 2, (0, 2, 4)),
    ("3g.90gb", 9, "89Gi", 70, 6, 3, 3, 0, 4, (0, 4)),
    ("4g.90gb", 5, "89Gi", 72, 8, 4, 4, 0, 4, (0,)),
    ("7g.180gb", 0, "182784Mi", 148, 16, 7, 7, 1, 8, (0,)),
))  # fmt: skip


def mig_gpu(model: Mig, number: int, *, whole: bool) -> list[Json]:
    """The devices of one GPU: its partitions, and the whole GPU where the driver offers it beside them."""
    counter_set = f"gpu-{number}-counter-set"
    common = {
        "productName": model.product,
        "brand": "Nvidia",
        "architecture": model.architecture,
        "cudaComputeCapability": ("version", model.cuda),
        "driverVersion": ("version", "580.65.6"),
        "cudaDriverVersion": ("version", "13.0.0"),
        "resource.kubernetes.io/pciBusID": f"0000:{0x53 + 0x10 * number:02x}:00.0",
        "resource.kubernetes.io/pcieRoot": f"pci0000:{0x50 + 0x10 * number:02x}",
        "numaNode": number // 4,
    }
    parent = unique("GPU-", model.name, number)
    devices = []
    for profile, ident, memory, sms, copy, dec, jpeg, ofa, size, placements in model.profiles:
        amounts = (memory, sms, copy, dec, 0, jpeg, ofa)
        for place in placements:
            name = f"gpu-{number}-mig-{profile.replace('.', '').replace('+', '-')}-{ident}-{place}"
            attributes = {"type": "mig", "profile": profile, "parentUUID": parent,
                          "uuid": unique("MIG-", parent, ident, place), **common}  # fmt: skip
            taken = dict(zip(_AMOUNTS, amounts, strict=True))
            taken |= {f"memory-slice-{k}": 1 for k in range(place, place + size)}
            capacity = {key: str(amount) for key, amount in zip(_CAMEL, amounts, strict=True)}
            devices.append(device(name, attributes, capacity, consumesCounters=takes(counter_set, taken)))
    if whole:
        taken = dict(zip(_AMOUNTS, model.whole, strict=True)) | {f"memory-slice-{k}": 1 for k in range(8)}
        capacity = {key: str(amount) for key, amount in zip(_CAMEL, model.whole, strict=True)}
        attributes = {"type": "gpu", "uuid": parent, **common}
        devices.append(device(f"gpu-{number}", attributes, capacity, consumesCounters=takes(counter_set, taken)))
    return devices


def mig(model: Mig, gpus: int, *, whole: bool = True) -> Shape:
    """A node with GPUs in MIG mode: a slice with the counter sets, and one for each GPU."""
    sets = [
        {
            "name": f"gpu-{number}-counter-set",
            "counters": counters(
                dict(zip(_AMOUNTS, model.whole, strict=True)) | {f"memory-slice-{k}": 1 for k in range(8)}
            ),
        }
        for number in range(gpus)
    ]
    contents = [{"sharedCounters": sets}, *({"devices": mig_gpu(model, n, whole=whole)} for n in range(gpus))]
    kind = f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type == "
    small, large = model.profiles[0][0], model.profiles[4][0]
    claims = {
        "seven-of-the-smallest": partitions({small: 7}),
        "two-large-of-one-gpu": partitions({large: 2}),
        "eight-of-the-smallest-do-not-fit": partitions({small: 8}),
    }
    if whole:
        claims["whole-gpu"] = claim(request("gpu", NVIDIA))
    return Shape(
        model.name,
        f"{gpus} x {model.product} with MIG: every placement of every profile, held apart by counters",
        slices_of(NVIDIA, contents),
        [device_class("mig.nvidia.com", kind + "'mig'"), device_class(NVIDIA, kind + "'gpu'")],
        claims,
    )


def partitions(wanted: dict[str, int]) -> Json:
    """A claim for so many partitions of each profile, all of one GPU."""
    requests = [
        request(f"p{number}", "mig.nvidia.com", f"device.attributes['{NVIDIA}'].profile == '{profile}'", count=count)
        for number, (profile, count) in enumerate(wanted.items())
    ]
    return claim(*requests, constraints=[{"matchAttribute": f"{NVIDIA}/parentUUID"}])


# --- other GPUs and accelerators -------------------------------------------------------------------------------------

EXAMPLE = "gpu.example.com"
AMD = "gpu.amd.com"
TPU, TPU_HOSTS = "tpu.google.com", "tpu.dra.example.com"


def partitionable() -> Shape:
    """A GPU that is used as a whole or in four parts (KEP-4815); the parts are listed first, so that they go first."""
    parts = [
        device(f"gpu-0-partition-{k}", {"kind": "partition"}, {"memory": "10Gi"},
               consumesCounters=takes("gpu-0-counter-set", {"memory": "10Gi"}))
        for k in range(4)
    ]  # fmt: skip
    gpu = device("gpu-0", {"kind": "gpu"}, {"memory": "40Gi"},
                 consumesCounters=takes("gpu-0-counter-set", {"memory": "40Gi"}))  # fmt: skip
    sets = [{"name": "gpu-0-counter-set", "counters": counters({"memory": "40Gi"})}]
    whole = f'device.attributes["{EXAMPLE}"].kind == "gpu"'
    return Shape(
        "partitionable",
        "one GPU of 40Gi, whole or as four partitions",
        slices_of(EXAMPLE, [{"sharedCounters": sets}, {"devices": [*parts, gpu]}]),
        [device_class(EXAMPLE, f'device.driver == "{EXAMPLE}"')],
        {
            "any": claim(request("gpu", EXAMPLE)),
            "whole": claim(request("gpu", EXAMPLE, whole)),
            "whole-and-a-partition-do-not-fit": claim(request("gpu", EXAMPLE, whole), request("part", EXAMPLE)),
        },
    )


def modes() -> Shape:
    """Memory for both modes, but compatibility groups allow only one at a time."""
    members = [
        device(f"gpu-0-{mode}", {"mode": mode}, {"memory": "4Gi"},
               consumesCounters=takes("gpu-0-counter-set", {"memory": "4Gi"}, compatibilityGroups=[mode]))
        for mode in ("mig", "vgpu")
    ]  # fmt: skip
    sets = [{"name": "gpu-0-counter-set", "counters": counters({"memory": "8Gi"})}]
    return Shape(
        "modes",
        "one GPU in one of two modes that exclude each other (compatibility groups, alpha)",
        slices_of(EXAMPLE, [{"sharedCounters": sets}, {"devices": members}]),
        [device_class(EXAMPLE, f'device.driver == "{EXAMPLE}"')],
        {
            "one-mode": claim(request("gpu", EXAMPLE)),
            "both-modes-do-not-fit": claim(request("gpu", EXAMPLE, count=2)),
        },
    )


def tpu() -> Shape:
    """Four TPUs of one node."""
    members = [device(f"accel{k}", {"index": k, "tpuGen": "v4", "uuid": unique("TPU-", k)}) for k in range(4)]
    return Shape(
        "tpu",
        "four TPU v4 chips of one node",
        slices_of(TPU, [{"devices": members}]),
        [device_class(TPU, f'device.driver == "{TPU}"')],
        {
            "all": claim(request("tpus", TPU, all_devices=True)),
            "four": claim(request("tpus", TPU, count=4)),
            "five-do-not-fit": claim(request("tpus", TPU, count=5)),
        },
    )


def tpu_hosts() -> Shape:
    """TPUs over several hosts: some topologies span nodes, which preemption must never free (KEP-4815)."""

    def on(*numbers: int) -> Json:
        names = [f"node-{number}" for number in numbers]
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}
        return {"nodeSelector": {"nodeSelectorTerms": [term]}}

    def topology(name: str, size: int, numbers: tuple[int, ...], where: Json) -> Json:
        taken = {f"tpus-node-{number}": 4 for number in numbers}
        return device(name, {"topology": name.split("-")[1]}, {"tpus": str(size)},
                      consumesCounters=takes("tpu-counter-set", taken), **where)  # fmt: skip

    members = [
        topology("tpu-4x4-1", 16, (1, 2, 5, 6), on(1, 2, 5, 6)),
        topology("tpu-2x4-1", 8, (1, 2), on(1, 2)),
        topology("tpu-2x4-2", 8, (5, 6), on(5, 6)),
        *(topology(f"tpu-2x2-{k + 1}", 4, (number,), {"nodeName": f"node-{number}"})
          for k, number in enumerate((1, 2, 5, 6))),
    ]  # fmt: skip
    sets = [{"name": "tpu-counter-set", "counters": counters({f"tpus-node-{n}": 4 for n in (1, 2, 5, 6)})}]
    return Shape(
        "tpu-hosts",
        "TPU topologies over four hosts: 4x4 and 2x4 span nodes, 2x2 are each one node's",
        slices_of(TPU_HOSTS, [{"sharedCounters": sets}, {"devices": members}], pool="tpu-pool",
                  perDeviceNodeSelection=True),
        [device_class(TPU_HOSTS, f'device.driver == "{TPU_HOSTS}"')],
        {
            f"tpus-{size}": claim(
                request("tpu", TPU_HOSTS, f'device.capacity["{TPU_HOSTS}"].tpus == quantity("{size}")')
            )
            for size in (4, 8, 16)
        },
        "node-1",
        {"kubernetes.io/hostname": "node-1"},
    )  # fmt: skip


def amd() -> Shape:
    """An MI300X whose partition mode follows from what is allocated: one mode at a time, each shareable."""
    modes_of = (("spx", "nps1", 1), ("dpx", "nps2", 2), ("cpx", "nps1", 8), ("cpx", "nps4", 8))
    members = []
    for compute, memory, parts in modes_of:
        policy = {"default": "1", "validRange": {"min": "1", "step": "1"}}
        capacity = {
            "partitions": {"value": str(parts), "requestPolicy": policy},
            "memory": {"value": "192Gi", "requestPolicy": {"default": f"{192 // parts}Gi"}},
            "computeUnits": {"value": "304", "requestPolicy": {"default": str(304 // parts)}},
        }
        attributes = {
            "type": "amdgpu",
            "computePartition": compute,
            "memoryPartition": memory,
            "gpuIndex": 0,
            "deviceID": "0x74a1",
            "productName": "AMD Instinct MI300X",
            "driverVersion": ("version", "6.12.12"),
            "resource.kubernetes.io/pciBusID": "0000:19:00.0",
            "numaNode": 0,
        }
        members.append(device(f"gpu-0-{compute}-{memory}", attributes, capacity, allowMultipleAllocations=True,
                              consumesCounters=takes("gpu-0-mutex", {"partition-mode": 1})))  # fmt: skip
    sets = [{"name": "gpu-0-mutex", "counters": counters({"partition-mode": 1})}]

    def mode(compute: str, memory: str) -> str:
        here = f'device.attributes["{AMD}"]'
        return f'{here}.computePartition == "{compute}" && {here}.memoryPartition == "{memory}"'

    return Shape(
        "amd",
        "an AMD Instinct MI300X: partition modes exclude each other by a counter, shares by consumable capacity",
        slices_of(AMD, [{"sharedCounters": sets}, {"devices": members}]),
        [device_class(AMD, f'device.driver == "{AMD}"')],
        {
            "one-partition": claim(request("part", AMD, mode("cpx", "nps4"))),
            "whole-gpu": claim(request("gpu", AMD, mode("spx", "nps1"))),
            "two-modes-do-not-fit": claim(
                request("part", AMD, mode("cpx", "nps4")), request("gpu", AMD, mode("spx", "nps1"))
            ),
        },
    )


# --- network, CPUs, whole nodes --------------------------------------------------------------------------------------

NET, CPU, MEMORY = "dra.net", "dra.cpu", "dra.memory"


def dranet() -> Shape:
    """GPUs and InfiniBand NICs of two drivers; the Ethernet NIC lacks attributes, so selectors have to be guarded."""
    nics = [
        device(f"pci-{0x0101 + k:04x}-00-00-0", {
            "dra.net/ibOnly": True, "dra.net/numaNode": k // 2, "dra.net/pciAddress": f"{0x0101 + k:04x}:00:00.0",
            "dra.net/pciDevice": "ConnectX Family mlx5Gen Virtual Function", "dra.net/pciSubsystem": "0240",
            "dra.net/pciVendor": "Mellanox Technologies", "dra.net/rdma": True, "dra.net/rdmaDevice": f"mlx5_{k}"})
        for k in range(4)
    ]  # fmt: skip
    ethernet = {
        "dra.net/alias": "", "dra.net/ebpf": False, "dra.net/encapsulation": "ether", "dra.net/ifName": "eth0",
        "dra.net/mac": "02:00:00:00:00:01", "dra.net/mtu": 1500, "dra.net/pciDevice": "unknown",
        "dra.net/pciSubsystem": "00b9", "dra.net/pciVendor": "Microsoft Corporation", "dra.net/rdma": False,
        "dra.net/sriov": False, "dra.net/state": "up", "dra.net/type": "device", "dra.net/virtual": False,
    }  # fmt: skip
    nics.append(device("pci-7870-00-00-0", ethernet))
    gpus = [
        device(f"gpu-{k}", {"type": "gpu", "uuid": unique("GPU-", "dranet", k), "productName": "NVIDIA GB300",
                            "resource.kubernetes.io/pciBusID": f"{bus}:06:00.0",
                            "resource.kubernetes.io/pcieRoot": f"pci{bus}:00", "numa": k // 2})
        for k, bus in enumerate(("0008", "0009", "0018", "0019"))
    ]  # fmt: skip
    rdma = f'device.attributes["{NET}"].rdma == true'
    return Shape(
        "dranet",
        "four GPUs, four InfiniBand NICs and an Ethernet NIC of two drivers",
        slices_of(NVIDIA, [{"devices": gpus}]) + slices_of(NET, [{"devices": nics}]),
        [device_class(NVIDIA, f'device.driver == "{NVIDIA}"'), device_class("dranet.net", f'device.driver == "{NET}"')],
        {
            "gpu-and-nic": claim(
                request("gpu", NVIDIA, 'device.attributes["resource.kubernetes.io"].pciBusID == "0008:06:00.0"'),
                request("nic", "dranet.net", f'{rdma} && device.attributes["{NET}"].rdmaDevice == "mlx5_0"'),
            ),
            "nics-of-numa-0": claim(
                request("nics", "dranet.net", f'{rdma} && device.attributes["{NET}"].numaNode == 0', count=2)
            ),
            "three-nics-of-numa-0-do-not-fit": claim(
                request("nics", "dranet.net", f'"numaNode" in device.attributes["{NET}"] && '
                                              f'device.attributes["{NET}"].numaNode == 0', count=3)
            ),
            "unguarded-selector-fails": claim(
                request("nics", "dranet.net", f'device.attributes["{NET}"].rdmaDevice == "mlx5_9"')
            ),
        },
    )  # fmt: skip


def cpu_groups(names: str = "cpudevnuma", cpus: str = "64") -> list[Json]:
    """CPUs by NUMA node, shareable."""
    policy = {"default": "1", "validRange": {"min": "1", "step": "1"}}
    return [
        device(f"{names}{k:03d}", {
            "dra.cpu/numCPUs": int(cpus), "dra.cpu/numaNodeID": k, "dra.cpu/socketID": k, "dra.cpu/smtEnabled": True,
            "dra.net/numaNode": k, "resource.kubernetes.io/numaNode": k},
            {"dra.cpu/cpu": {"value": cpus, "requestPolicy": policy}},
            allowMultipleAllocations=True)
        for k in range(2)
    ]  # fmt: skip


def cpu() -> Shape:
    """CPUs in two groups of 64, one a NUMA node."""
    here = 'device.attributes["dra.cpu"].numaNodeID'
    amounts = {"dra.cpu/cpu": "10"}
    return Shape(
        "cpu",
        "the CPU driver: two NUMA nodes of 64 CPUs as shareable devices",
        slices_of(CPU, [{"devices": cpu_groups()}]),
        [device_class(CPU, f'device.driver == "{CPU}"')],
        {
            "ten-of-each": claim(
                request("numa-0", CPU, f"{here} == 0", amounts=amounts),
                request("numa-1", CPU, f"{here} == 1", amounts=amounts),
            ),
            "seventy-do-not-fit": claim(request("cpus", CPU, amounts={"dra.cpu/cpu": "70"})),
        },
    )


def cpu_single() -> Shape:
    """CPUs one by one: as many devices as a slice can have; siblings share a coreID."""
    members = [
        device(f"cpudev{k:03d}", {
            "dra.cpu/cpuID": k, "dra.cpu/coreID": k % 32 + 32 * (k // 64), "dra.cpu/coreType": "standard",
            "dra.cpu/numaNodeID": k // 64, "dra.cpu/socketID": k // 64,
            "dra.cpu/cacheL3ID": k % 32 // 8 + 4 * (k // 64), "dra.net/numaNode": k // 64})
        for k in range(128)
    ]  # fmt: skip
    return Shape(
        "cpu-single",
        "the CPU driver: 128 single CPUs, the limit of a slice",
        slices_of(CPU, [{"devices": members}]),
        [device_class(CPU, f'device.driver == "{CPU}"')],
        {
            "both-threads-of-a-core": claim(
                request("cpus", CPU, count=2), constraints=[{"matchAttribute": "dra.cpu/coreID"}]
            ),
            "eight-cores": claim(
                request("cpus", CPU, count=8), constraints=[{"distinctAttribute": "dra.cpu/coreID"},
                                                            {"matchAttribute": "dra.cpu/cacheL3ID"}]
            ),
            "nine-cores-of-one-cache-do-not-fit": claim(
                request("cpus", CPU, count=9), constraints=[{"distinctAttribute": "dra.cpu/coreID"},
                                                            {"matchAttribute": "dra.cpu/cacheL3ID"}]
            ),
        },
    )  # fmt: skip


def example() -> Shape:
    """The example driver of the Kubernetes project."""
    members = [
        device(f"gpu-{k}", {"driverVersion": ("version", "1.0.0"), "index": k, "model": "LATEST-GPU-MODEL",
                            "uuid": unique("gpu-", "example", k)}, {"memory": "80Gi"})
        for k in range(8)
    ]  # fmt: skip
    enough = f"device.capacity['{EXAMPLE}'].memory.compareTo(quantity('10Gi')) >= 0"
    sub = {"deviceClassName": EXAMPLE, "allocationMode": "ExactCount"}
    return Shape(
        "example-driver",
        "the example driver: eight equal GPUs",
        slices_of(EXAMPLE, [{"devices": members}], generation=0),
        [device_class(EXAMPLE, f"device.driver == '{EXAMPLE}'")],
        {
            "one": claim(request("gpu", EXAMPLE, enough)),
            "sixteen-else-two": claim(
                {"name": "gpus", "firstAvailable": [{"name": "many", **sub, "count": 16},
                                                    {"name": "few", **sub, "count": 2}]}
            ),
            "nine-do-not-fit": claim(request("gpu", EXAMPLE, count=9)),
        },
    )  # fmt: skip


def mixed() -> Shape:
    """A server with two sockets: GPUs, NIC functions, CPUs and memory, to be had by the eighth."""
    numa, root = "resource.kubernetes.io/numaNode", "resource.kubernetes.io/pcieRoot"
    gpus = [
        device(f"gpu-{k}", {"type": "amdgpu", "productName": "AMD Instinct MI300X", numa: k // 4,
                            root: f"pci0000:{0x10 * (k + 1):02x}"}, {"memory": "192Gi"})
        for k in range(8)
    ]  # fmt: skip
    functions = [
        device(f"vf-{k}", {"dra.net/sriov": True, numa: k // 8, root: f"pci0000:{0x10 * (k // 2 + 1):02x}"})
        for k in range(16)
    ]
    zones = [
        device(f"memory-{k}", {numa: k // 2}, {"size": {"value": "512Gi", "requestPolicy": {
            "default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}}}, allowMultipleAllocations=True)
        for k in range(4)
    ]  # fmt: skip
    drivers = ((AMD, gpus), (NET, functions), (CPU, cpu_groups()), (MEMORY, zones))
    slices = [slice_ for driver, members in drivers for slice_ in slices_of(driver, [{"devices": members}])]

    def part(gpus: int) -> Json:
        return claim(
            request("gpu", AMD, count=gpus), request("vf", NET, count=2),
            request("cpu", CPU, amounts={"dra.cpu/cpu": "8"}), request("memory", MEMORY, amounts={"size": "128Gi"}),
            constraints=[{"matchAttribute": numa}, {"matchAttribute": root, "requests": ["gpu", "vf"]}]
            if gpus == 1 else [{"matchAttribute": numa}],
        )  # fmt: skip

    return Shape(
        "mixed",
        "two sockets with 8 GPUs, 16 NIC functions, 128 CPUs and memory: an eighth of the node a claim",
        slices,
        [device_class(driver, f'device.driver == "{driver}"') for driver, _ in drivers],
        {"an-eighth": part(1), "two-gpus-of-one-socket": part(2), "five-gpus-of-one-socket-do-not-fit": part(5)},
    )


def shapes() -> dict[str, Shape]:
    """All shapes, by name."""
    made = [
        mig(H100, 2), mig(A100, 1, whole=False), mig(B200, 1), partitionable(), modes(), tpu(), tpu_hosts(), amd(),
        dranet(), cpu(), cpu_single(), example(), mixed(),
    ]  # fmt: skip
    return {shape.name: shape for shape in made}


def text(shape: Shape) -> str:
    """The file of a shape."""
    head = f"# {shape.about[0].upper()}{shape.about[1:]}. Written by make.py.\n"
    return head + yaml.safe_dump_all(shape.manifests(), sort_keys=False, width=120)


def main() -> int:
    """Write the files, or print problems."""
    if sys.argv[1:2] == ["lines"] and len(sys.argv) == 3:
        shape = shapes()[sys.argv[2]]
        for name, wanted in shape.claims.items():
            print(json.dumps(shape.problem(name, wanted)))
        return 0
    for shape in shapes().values():
        (HERE / f"{shape.name}.yaml").write_text(text(shape))
    return 0


if __name__ == "__main__":
    sys.exit(main())
