"""What the API tells of pods and nodes, brought to cache, queue and nominator (upstream A18)."""

from __future__ import annotations

from earmark.framework import events, hooks
from earmark.framework.binding import Binder
from earmark.framework.core import Core
from earmark.framework.events import ClusterEvent
from earmark.framework.history import Histories
from earmark.framework.hooks import NominationHook
from earmark.framework.node_info import PodInfo
from earmark.kube import objects
from earmark.kube.informer import InformerEvent
from earmark.kube.quantity import QuantityError


class Watching:
    """Handlers of the informers. They run at once and never wait."""

    def __init__(self, core: Core, binder: Binder, hook: NominationHook, histories: Histories) -> None:
        self._core = core
        self._binder = binder
        self._hook = hook
        self._histories = histories

    # --- nodes -------------------------------------------------------------------------------------------------------

    def node(self, event: InformerEvent[objects.Node]) -> None:
        """A node was added, changed or removed."""
        core = self._core
        if event.new is None:
            assert event.old is not None
            name = event.old.metadata.name
            core.cache.remove_node(name)
            core.move(ClusterEvent(events.NODE_DELETE, old=event.old))
            # Nothing that happens on a node that is gone can help those who wait for room there.
            core.queue.activate([nominated.uid for nominated in core.nominator.on_node(name)], core.now())
            core.notify()
            return
        core.cache.put_node(event.new)
        if event.old is None or event.old.metadata.uid != event.new.metadata.uid:
            core.move(ClusterEvent(events.NODE_ADD, new=event.new))
            return
        for name in events.node_changes(event.old, event.new):
            core.move(ClusterEvent(name, event.old, event.new))

    # --- pods --------------------------------------------------------------------------------------------------------

    def pod(self, event: InformerEvent[objects.Pod]) -> None:
        """A pod was added, changed or removed."""
        old, new = event.old, event.new
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            self._changed(old, None)
            old = None
        self._changed(old, new)
        self._core.notify()

    def _changed(self, old: objects.Pod | None, new: objects.Pod | None) -> None:
        was_assigned, is_assigned = _assigned(old), _assigned(new)
        if is_assigned:
            assert new is not None
            self._assigned(old if was_assigned else None, old, new)
        elif was_assigned:
            assert old is not None
            self._unassigned(old)
        was_pending, is_pending = self._pending(old), self._pending(new)
        if is_pending:
            assert new is not None
            self._pending_seen(old if was_pending else None, new)
        elif was_pending and not is_assigned:
            assert old is not None
            self._pending_gone(old)

    def _assigned(self, before: objects.Pod | None, any_before: objects.Pod | None, new: objects.Pod) -> None:
        core = self._core
        uid = new.metadata.uid
        assumed = core.cache.assumed(uid)
        core.cache.put_pod(_info(new))
        if before is not None:
            core.move(ClusterEvent(events.ASSIGNED_POD_UPDATE, before, new))
            return
        if any_before is not None or core.queue.get(uid) is not None:
            core.queue.delete(uid)
        if not assumed:
            # Bound by somebody else: an assumed pod has lost its nomination already.
            self._hook.changed(core.nominator.clear(uid), hooks.BOUND)
        core.nominator.forget(uid)
        core.move(ClusterEvent(events.ASSIGNED_POD_ADD, new=new))

    def _unassigned(self, old: objects.Pod) -> None:
        self._core.cache.remove_pod(old.metadata.uid)
        self._core.forget_events(old.metadata.uid)
        self._core.move(ClusterEvent(events.ASSIGNED_POD_DELETE, old=old))

    def _pending(self, pod: objects.Pod | None) -> bool:
        return pod is not None and not pod.spec.node_name and not pod.terminal and self._core.responsible(pod)

    def _pending_seen(self, old: objects.Pod | None, new: objects.Pod) -> None:
        core = self._core
        uid = new.metadata.uid
        if core.cache.assumed(uid):
            # Updates of an assumed pod say nothing new, but for its deletion (upstream A18.3).
            if new.metadata.deletion_timestamp is not None:
                self._binder.pod_deleted(uid)
            return
        before = core.nominator.get(uid)
        change = core.nominator.pod_seen(old, new)
        self._hook.changed(change)
        known = core.queue.get(uid) is not None
        if known or old is not None:
            core.queue.update(new, core.now())
        if not known and self._binder.get(uid) is None:
            core.queue.add(new, core.now())
        if change.lost is not None and before is not None and old is not None:
            core.nomination_gone(old, before.node)

    def _pending_gone(self, old: objects.Pod) -> None:
        core = self._core
        uid = old.metadata.uid
        core.queue.delete(uid)
        self._histories.forget(uid)
        core.forget_events(uid)
        nominated = core.nominator.get(uid)
        self._hook.changed(core.nominator.forget(uid), hooks.POD_DELETED)
        if core.cache.assumed(uid):
            # It is being bound: binding fails and puts nothing back.
            self._binder.pod_deleted(uid)
        node = nominated.node if nominated is not None else old.status.nominated_node_name
        if node:
            core.nomination_gone(old, node)


def _assigned(pod: objects.Pod | None) -> bool:
    return pod is not None and bool(pod.spec.node_name) and not pod.terminal


def _info(pod: objects.Pod) -> PodInfo:
    try:
        return PodInfo.of(pod)
    except QuantityError:
        # It runs, whatever its resources say: it counts as a pod.
        return PodInfo(pod, pod.metadata.uid, pod.priority, {}, 0, 0, ())
