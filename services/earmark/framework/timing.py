"""How long extension points and plugins take (upstream A3.3): all extension points, plugins of sampled cycles."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from earmark.framework.metrics import Metrics
from earmark.framework.status import Status
from earmark.kube.clock import Clock

_NAMES = {
    1: "Success",
    2: "Error",
    3: "Unschedulable",
    4: "UnschedulableAndUnresolvable",
    5: "Wait",
    6: "Skip",
    7: "Pending",
}


class Timing:
    """Measures one cycle. `sampled` says whether plugins are measured one by one."""

    def __init__(self, metrics: Metrics, clock: Clock, plugins: tuple[str, ...], *, sampled: bool) -> None:
        self._metrics = metrics
        self._clock = clock
        self._plugins = plugins
        self._sampled = sampled

    @contextlib.contextmanager
    def extension_point(self, name: str) -> Iterator[Callable[[Status], None]]:
        """Measure all plugins of an extension point; call what is yielded with a status that is no success."""
        begin = self._clock.monotonic()
        seen = ["Success"]
        try:
            yield lambda status: seen.append(_NAMES[int(status.code)])
        finally:
            elapsed = self._clock.monotonic() - begin
            self._metrics.extension_point.labels(name, seen[-1], self._metrics.profile).observe(elapsed)

    @contextlib.contextmanager
    def plugin(self, plugin: str, extension_point: str) -> Iterator[Callable[[Status], None]]:
        """Measure one plugin."""
        begin = self._clock.monotonic()
        seen = ["Success"]
        try:
            yield lambda status: seen.append(_NAMES[int(status.code)])
        finally:
            self._metrics.plugin_evaluation.labels(plugin, extension_point, self._metrics.profile).inc()
            if self._sampled:
                elapsed = self._clock.monotonic() - begin
                self._metrics.plugin_execution.labels(plugin, extension_point, seen[-1]).observe(elapsed)

    @contextlib.contextmanager
    def plugins(self, extension_point: str) -> Iterator[None]:
        """Measure the in-process plugins, which run interleaved node by node: each gets an equal share."""
        begin = self._clock.monotonic()
        try:
            yield
        finally:
            if self._sampled and self._plugins:
                share = (self._clock.monotonic() - begin) / len(self._plugins)
                for plugin in self._plugins:
                    self._metrics.plugin_execution.labels(plugin, extension_point, "Success").observe(share)
