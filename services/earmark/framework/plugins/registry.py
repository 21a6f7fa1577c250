"""Which in-process plugins there are, in their order. A new plugin is one module and one line here."""

from __future__ import annotations

from earmark.framework.plugins.existing_anti_affinity import ExistingAntiAffinity, Guards
from earmark.framework.plugins.interface import FilterPlugin, PreEnqueuePlugin, ScorePlugin
from earmark.framework.plugins.node_affinity import NodeAffinity
from earmark.framework.plugins.node_name import NodeName
from earmark.framework.plugins.node_ports import NodePorts
from earmark.framework.plugins.node_resources_fit import NodeResourcesFit
from earmark.framework.plugins.node_unschedulable import NodeUnschedulable
from earmark.framework.plugins.scheduling_gates import SchedulingGates
from earmark.framework.plugins.taint_toleration import TaintToleration
from earmark.framework.plugins.unsupported_features import UnsupportedFeatures


def pre_enqueue_plugins() -> tuple[PreEnqueuePlugin, ...]:
    """Return the plugins that gate pods."""
    return (SchedulingGates(),)


def filter_plugins(guards: Guards = tuple) -> tuple[FilterPlugin, ...]:
    """Return the filters; the first that refuses a node gives its reason (upstream A6.5).

    `guards` gives the pods on nodes whose anti-affinity is to be respected.
    """
    return (
        UnsupportedFeatures(),
        NodeUnschedulable(),
        NodeName(),
        TaintToleration(),
        NodeAffinity(),
        NodePorts(),
        NodeResourcesFit(),
        ExistingAntiAffinity(guards),
    )


def score_plugins() -> tuple[ScorePlugin, ...]:
    """Return the plugins that rank nodes."""
    return (TaintToleration(), NodeAffinity(), NodeResourcesFit())
