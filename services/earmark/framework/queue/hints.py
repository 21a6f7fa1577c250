"""Which plugins asked for which events, and what an event means for a pod that they rejected (upstream A16.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from earmark.framework import events
from earmark.framework.events import ClusterEvent, Hint
from earmark.framework.queue.entry import Place, QueuedPod, Strategy


class HintRegistry:
    """Hints by plugin and event. Remote plugins register their requeue events when they have described themselves."""

    def __init__(
        self, asked: Callable[[str, str, Callable[[], bool]], bool] = lambda _plugin, _event, ask: ask()
    ) -> None:
        """`asked(plugin, event, ask)` asks a hint, for whoever measures that."""
        self._asked = asked
        self._hints: dict[str, dict[str, Hint]] = {}

    def register(self, plugin: str, hints: Mapping[str, Hint]) -> None:
        """Add hints of a plugin; several parts of one plugin may each add theirs."""
        self._hints.setdefault(plugin, {}).update(hints)

    def register_always(self, plugin: str, names: Iterable[str]) -> None:
        """Register events at which every pod that the plugin rejected is queued again."""
        self._hints[plugin] = dict.fromkeys(names, events.always)

    def knows(self, event: str) -> bool:
        """Whether any plugin asked for the event."""
        return any(event in hints for hints in self._hints.values())

    def strategy(self, pod: QueuedPod, event: ClusterEvent) -> Strategy:
        """Return what the event means for a pod. Only plugins that rejected the pod are asked (upstream A16.9).

        A pod that is gated listens only to the events of the plugin that gates it, and to wildcards (upstream A16.3).
        """
        if event.wildcard:
            return Strategy.IMMEDIATELY if event.name == events.FORCE_ACTIVATE else Strategy.AFTER_BACKOFF
        if event.plugin:
            return Strategy.IMMEDIATELY if event.at_once else Strategy.AFTER_BACKOFF
        if pod.place is Place.GATED and event.name not in self._hints.get(pod.gating_plugin, {}):
            return Strategy.SKIP
        rejectors = dict.fromkeys((*pod.unschedulable_plugins, *pod.pending_plugins))
        if pod.place is Place.GATED:
            rejectors[pod.gating_plugin] = None
        if not rejectors:
            return Strategy.AFTER_BACKOFF
        best = Strategy.SKIP
        for plugin in rejectors:
            hint = self._hints.get(plugin, {}).get(event.name)
            if hint is None or not self._asked(plugin, event.name, partial(hint, pod.pod, event.old, event.new)):
                continue
            if plugin in pod.pending_plugins:
                return Strategy.IMMEDIATELY
            best = Strategy.AFTER_BACKOFF
        return best
