"""The nominator: which pending pod is nominated to which node (upstream A15).

Every operation returns what changed by it, as a before/after difference; the caller tells plugins, outside of here.
So a nomination that is deleted and added again is no change (F9). Generations tell nominations of one pod apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from earmark.kube import objects


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that was chosen to go."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class NominatedPod:
    """A nomination. Generation 0: it came from elsewhere (the API, another component), no preemption made it."""

    uid: str
    namespace: str
    name: str
    node: str
    priority: int = 0
    generation: int = 0
    victims: tuple[Victim, ...] = ()
    # Records of the plugins, by plugin, in their own JSON.
    records: Mapping[str, str] = field(default_factory=dict)
    # Order of nomination, counted by the nominator.
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class NominationChange:
    """What an operation did to one pod's nomination. Equal `old` and `new`: nothing."""

    old: NominatedPod | None
    new: NominatedPod | None

    @property
    def lost(self) -> NominatedPod | None:
        """The nomination that is gone: its node changed or it vanished (F9)."""
        if self.old is None or (self.new is not None and self.new.node == self.old.node):
            return None
        return self.old


class Nominator:
    """Nominations by pod and by node. In memory it may be ahead of the API, never behind its own writes."""

    def __init__(self) -> None:
        self._by_uid: dict[str, NominatedPod] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        self._sequence = 0
        # The resourceVersion of this scheduler's newest write to a pod's nominatedNodeName; states of the pod that are
        # older tell nothing new. None: the write is under way.
        self._written: dict[str, int | None] = {}

    # --- reading -----------------------------------------------------------------------------------------------------

    def get(self, uid: str) -> NominatedPod | None:
        """Return a pod's nomination."""
        return self._by_uid.get(uid)

    def node_of(self, uid: str) -> str:
        """Return the node that a pod is nominated to, "" if none."""
        found = self._by_uid.get(uid)
        return found.node if found else ""

    def on_node(self, node: str) -> tuple[NominatedPod, ...]:
        """Return a node's nominations in the order of application: priority, then age (F6)."""
        uids = self._by_node.get(node)
        if not uids:
            return ()
        return tuple(sorted((self._by_uid[uid] for uid in uids), key=lambda n: (-n.priority, n.sequence)))

    def nodes(self) -> tuple[str, ...]:
        """Return the nodes that have nominations."""
        return tuple(sorted(self._by_node))

    def all(self) -> tuple[NominatedPod, ...]:
        """Return all nominations in their order of age."""
        return tuple(sorted(self._by_uid.values(), key=lambda n: n.sequence))

    # --- changing ----------------------------------------------------------------------------------------------------

    def nominate(self, nomination: NominatedPod) -> NominationChange:
        """Set a pod's nomination. On the node where it was it keeps its age unless its generation rises."""
        old = self._by_uid.get(nomination.uid)
        if old is not None and old.node == nomination.node and old.generation == nomination.generation:
            sequence = old.sequence
        else:
            self._sequence += 1
            sequence = self._sequence
        new = replace(nomination, sequence=sequence)
        self._drop(nomination.uid)
        self._by_uid[new.uid] = new
        self._by_node.setdefault(new.node, {})[new.uid] = None
        return NominationChange(old, new)

    def clear(self, uid: str) -> NominationChange:
        """Delete a pod's nomination."""
        return NominationChange(self._drop(uid), None)

    def forget(self, uid: str) -> NominationChange:
        """Delete everything about a pod that is gone or bound."""
        self._written.pop(uid, None)
        return self.clear(uid)

    def _drop(self, uid: str) -> NominatedPod | None:
        old = self._by_uid.pop(uid, None)
        if old is not None:
            uids = self._by_node[old.node]
            del uids[uid]
            if not uids:
                del self._by_node[old.node]
        return old

    # --- the API -----------------------------------------------------------------------------------------------------

    def writing(self, uid: str) -> None:
        """A write of the pod's nominatedNodeName begins: what the watch says of it does not count until it is done."""
        self._written[uid] = None

    def wrote(self, uid: str, resource_version: int) -> None:
        """The write is done; 0 if it failed, so that the API's word counts again."""
        if resource_version:
            self._written[uid] = resource_version
        else:
            self._written.pop(uid, None)

    def pod_seen(self, old: objects.Pod | None, new: objects.Pod) -> NominationChange:
        """An unbound pod was added or updated. Only a change by somebody else is taken over (F29, F30).

        A nomination in memory outlives updates that do not know of it yet (upstream A15.4).
        """
        uid = new.metadata.uid
        present = self._by_uid.get(uid)
        unchanged = NominationChange(present, present)
        before = old.status.nominated_node_name if old else ""
        after = new.status.nominated_node_name
        if before == after or after == (present.node if present else ""):
            return unchanged
        if uid in self._written:
            floor = self._written[uid]
            version = new.metadata.resource_version
            if floor is None or (version.isdigit() and int(version) <= floor):
                return unchanged
        if not after:
            return self.clear(uid)
        return self.nominate(NominatedPod(uid, new.metadata.namespace, new.metadata.name, after, priority=new.priority))
