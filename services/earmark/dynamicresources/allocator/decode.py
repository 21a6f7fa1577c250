"""From the picked devices to AllocationResults (upstream A6)."""

from __future__ import annotations

from collections.abc import Callable

from earmark.dynamicresources.allocator import features as gates
from earmark.dynamicresources.allocator.errors import FATAL, AllocationError
from earmark.dynamicresources.allocator.integers import Solution
from earmark.dynamicresources.allocator.requests import Claim
from earmark.dynamicresources.allocator.rows import Numbering, Row
from earmark.dynamicresources.allocator.skeleton import Skeleton, StaticChoice
from earmark.kube.objects import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)

_Picked = list[tuple[StaticChoice, tuple[int, ...]]]


def decode(
    claims: tuple[Claim, ...],
    skeleton: Skeleton,
    numbering: Numbering,
    node_name: str,
    solution: Solution,
    features: frozenset[str],
    variant: str,
    share_id: Callable[[], str],
) -> tuple[AllocationResult, ...]:
    """Return one AllocationResult per claim.

    share_id: makes a fresh ID for every share. Raises AllocationError for what upstream finds only after the search.
    """
    picked: list[_Picked] = [[] for _ in claims]
    for wish, (position, *devices) in zip(skeleton.wishes, solution, strict=True):
        picked[wish.claim].append((wish.choices[position], tuple(devices)))
    return tuple(
        _Decoder(claim, chosen, skeleton, numbering, node_name, features, variant, share_id).result()
        for claim, chosen in zip(claims, picked, strict=True)
    )


class _Decoder:
    def __init__(self, claim: Claim, picked: _Picked, skeleton: Skeleton, numbering: Numbering, node_name: str,
                 features: frozenset[str], variant: str, share_id: Callable[[], str]) -> None:  # fmt: skip
        self.claim = claim
        self.picked = picked
        self.skeleton = skeleton
        self.numbering = numbering
        self.node_name = node_name
        self.features = features
        self.variant = variant
        self.share_id = share_id

    def result(self) -> AllocationResult:
        results = []
        places = []
        for choice, devices in self.picked:
            for device in devices:
                row, position = self.numbering.locate(device)
                places.append((row, position))
                results.append(self._device(choice, device, row, position))
        return AllocationResult(
            devices=DeviceAllocationResult(results=tuple(results), config=self._config()),
            node_selector=self._node_selector(places),
        )

    def _device(self, choice: StaticChoice, number: int, row: Row, position: int) -> DeviceRequestAllocationResult:
        alternative = choice.alternative
        device = row.view.devices[position]
        binding = gates.DEVICE_BINDING_AND_STATUS in self.features
        share_id = consumed = None
        if self.skeleton.shareable >> number & 1:
            share_id = self.share_id()
            amounts = choice.consumed.get(number)
            if amounts:
                consumed = {name: str(amount) for name, amount in amounts.items()}
        return DeviceRequestAllocationResult(
            request=alternative.result_name,
            driver=row.view.driver,
            pool=row.view.pool[1],
            device=device.name,
            admin_access=True if alternative.admin else None,
            tolerations=alternative.tolerations,
            binding_conditions=(device.binding_conditions or ()) if binding else (),
            binding_failure_conditions=(device.binding_failure_conditions or ()) if binding else (),
            share_id=share_id,
            consumed_capacity=consumed,
            skip_node_operations=(
                row.view.slice.spec.skip_node_operations if self.variant == gates.EXPERIMENTAL else ()
            ),
        )

    def _config(self) -> tuple[DeviceAllocationConfiguration, ...]:
        """Class entries first, each class once; then the claim's that concern a request (upstream A6.4 to A6.6)."""
        chosen = [choice.alternative for choice, _ in self.picked]
        by_class: dict[str, list[str]] = {}
        classes = {}
        for alternative in chosen:
            name = alternative.device_class.metadata.name
            classes[name] = alternative.device_class
            by_class.setdefault(name, []).append(alternative.result_name)
        entries = [
            ("FromClass", tuple(requests), config.opaque)
            for name, requests in by_class.items()
            for config in classes[name].spec.config
        ]
        names = [{alternative.parent or alternative.name, alternative.result_name} for alternative in chosen]
        for config in self.claim.claim.spec.devices.config:
            if not config.requests or any(name in config.requests for accepted in names for name in accepted):
                entries.append(("FromClaim", config.requests, config.opaque))
        return tuple(
            DeviceAllocationConfiguration(
                source=source,
                requests=() if all(accepted & set(requests) for accepted in names) else requests,
                opaque=opaque,
            )
            for source, requests, opaque in entries
        )

    def _node_selector(self, places: list[tuple[Row, int]]) -> NodeSelector | None:
        """The node itself if a device is local to one, else all requirements of the devices (upstream A6.7)."""
        fields: list[NodeSelectorRequirement] = []
        expressions: list[NodeSelectorRequirement] = []
        for row, position in places:
            device = row.view.devices[position]
            node_name, _, selector = row.view.node_fields(device)
            binds = bool(device.binds_to_node) and self.variant != gates.STABLE
            if node_name is not None or binds:
                here = NodeSelectorRequirement(key="metadata.name", operator="In", values=(self.node_name,))
                return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
            terms = selector.node_selector_terms if selector is not None else ()
            if len(terms) > 1:
                name = self.claim.claim.metadata.name
                text = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
                raise AllocationError(FATAL, f"create NodeSelector for claim {name}: {text}")
            for term in terms:
                _merge(term.match_fields, fields)
                _merge(term.match_expressions, expressions)
        if not fields and not expressions:
            return None
        term = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
        return NodeSelector(node_selector_terms=(term,))


def _merge(new: tuple[NodeSelectorRequirement, ...], into: list[NodeSelectorRequirement]) -> None:
    for requirement in new:
        if not any(_same(requirement, other) for other in into):
            into.append(requirement)


def _same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (
        one.key == other.key and one.operator == other.operator and sorted(set(one.values)) == sorted(set(other.values))
    )
