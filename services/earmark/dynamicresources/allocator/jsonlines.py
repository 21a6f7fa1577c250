"""The oracle's form of input and output: one JSON object a problem (for tests, debugging and comparisons)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.api import Allocator
from earmark.dynamicresources.allocator.errors import AllocationError
from earmark.dynamicresources.allocator.nodes import NodeFacts
from earmark.dynamicresources.allocator.selecting import Judge
from earmark.dynamicresources.inventory import Inventory
from earmark.dynamicresources.ledger import DeviceId, Ledger
from earmark.kube.objects import AllocationResult, DeviceClass, Node, ResourceClaim, ResourceSlice
from earmark.kube.quantity import QuantityError

FIXED_SHARE_ID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"


class _Device(msgspec.Struct, frozen=True, rename="camel"):
    driver: str
    pool: str
    device: str
    share_id: str = msgspec.field(name="shareID", default="")

    @property
    def id(self) -> DeviceId:
        return (self.driver, self.pool, self.device)


class _State(msgspec.Struct, frozen=True):
    allocated_devices: tuple[_Device, ...] = ()
    allocated_shared_device_ids: tuple[_Device, ...] = ()
    aggregated_capacity: dict[str, dict[str, str]] = {}


class _Line(msgspec.Struct, frozen=True):
    node: Node | None = None
    claims: tuple[ResourceClaim, ...] = ()
    slices: tuple[ResourceSlice, ...] = ()
    classes: tuple[DeviceClass, ...] = ()
    allocated: tuple[ResourceClaim, ...] = ()
    allocated_state: _State = _State()
    features: list[str] | dict[str, bool] | None = None
    channel: str = ""


def allocate_line(
    line: Mapping[str, Any],
    *,
    share_id: Callable[[], str] = lambda: FIXED_SHARE_ID,
    expired: Callable[[], bool] = lambda: False,
    judge: Judge | None = None,
) -> dict[str, Any]:
    """Answer one problem: id, results (None: does not fit), and error with error_kind if there is one.

    Kinds: those of AllocationError, "input" for a line that is not one, "new_allocator" for features that no variant
    supports.
    """
    answer: dict[str, Any] = {"id": line.get("id"), "results": None}
    try:
        question = Question.read(line)
        allocator = Allocator(question.inventory, question.features, channel=question.channel, judge=judge)
        results = allocator.prepare(question.claims).allocate(
            question.node, [question.ledger], expired=expired, share_id=share_id
        )
        if results is not None:
            answer["results"] = [plain_result(result) for result in results]
    except gates.UnsupportedFeatures as error:
        answer |= {"error": str(error), "error_kind": "new_allocator"}
    except AllocationError as error:
        answer |= {"error": error.text, "error_kind": error.kind}
    except (msgspec.ValidationError, QuantityError) as error:
        answer |= {"error": f"decode: {error}", "error_kind": "input"}
    return answer


class Question:
    """A decoded line."""

    def __init__(self, line: _Line) -> None:
        if line.node is None:
            raise msgspec.ValidationError("node missing")
        self.node = NodeFacts.of(line.node)
        self.claims = line.claims
        self.features = _features(line.features)
        self.channel = line.channel
        self.inventory = Inventory.in_order(line.slices, line.classes)
        self.ledger = _ledger(line, gates.CONSUMABLE_CAPACITY in self.features)

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> Question:
        """Decode a line; null stands for what is not there, as in Go. Raises msgspec.ValidationError."""
        try:
            return cls(msgspec.convert(line, _Line))
        except msgspec.ValidationError:
            return cls(msgspec.convert(_without_nulls(line), _Line))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _features(given: list[str] | dict[str, bool] | None) -> frozenset[str]:
    if given is None:
        return gates.ALL_FEATURES
    unknown = [name for name in given if name not in gates.ALL_FEATURES]
    if unknown:
        raise msgspec.ValidationError(f"features: unknown feature {unknown[0]!r}")
    if isinstance(given, list):
        return frozenset(given)
    return frozenset(name for name in gates.ALL_FEATURES if given.get(name, True))


def _ledger(line: _Line, consumable: bool) -> Ledger:
    state = line.allocated_state
    aggregated = []
    for key, amounts in state.aggregated_capacity.items():
        driver, _, rest = key.partition("/")
        pool, _, device = rest.rpartition("/")
        if not pool:
            raise msgspec.ValidationError(f"bad device id {key!r}")
        aggregated.append(((driver, pool, device), amounts))
    ledger = Ledger.from_allocated_state(
        [device.id for device in state.allocated_devices],
        [(device.id, device.share_id) for device in state.allocated_shared_device_ids],
        aggregated,
        consumable_capacity=consumable,
    )
    for number, claim in enumerate(line.allocated):
        if claim.status.allocation is not None:
            ledger = ledger.charge(f"{number}/{claim.metadata.uid}", claim.status.allocation)
    return ledger


def plain_result(result: AllocationResult) -> dict[str, Any]:
    """Return an AllocationResult as plain JSON data."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(result))
    plain.setdefault("devices", {})
    return plain
