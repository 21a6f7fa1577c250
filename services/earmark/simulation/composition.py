"""Which services a run has and how they are set: as in production, with what the scenario says."""

from __future__ import annotations

from collections.abc import Mapping

from earmark.claimcontroller import component as claimcontroller
from earmark.claimcontroller.settings import ClaimControllerSettings
from earmark.dynamicresources import component as dynamicresources
from earmark.dynamicresources.settings import DRA_PREEMPTION
from earmark.dynamicresources.settings import Settings as DynamicResourcesSettings
from earmark.framework import component as framework
from earmark.framework.settings import FrameworkSettings
from earmark.nodes import component as nodes
from earmark.nodes.settings import NodesSettings
from earmark.preemption import component as preemption
from earmark.preemption.settings import PreemptionSettings
from earmark.simulation.fleet import Builder
from earmark.simulation.scenario import Scenario

# Pods of scenarios name no scheduler, or ours.
SCHEDULER_NAMES = ("default-scheduler", "earmark")


def builders(scenario: Scenario, scheduler_names: tuple[str, ...] = SCHEDULER_NAMES) -> Mapping[str, Builder]:
    """Return how each service is built for a scenario."""
    gates = dict(scenario.feature_gates)
    framework_settings = FrameworkSettings(
        scheduler_names=scheduler_names,
        feature_gates={DRA_PREEMPTION: gates.get(DRA_PREEMPTION, False)},
    )
    plugin_settings = DynamicResourcesSettings(feature_gates=gates)
    controller_settings = ClaimControllerSettings(deallocation_seconds=scenario.delays.deallocation)
    nodes_settings = NodesSettings(startup_seconds=scenario.delays.startup)
    return {
        "nodes": lambda env: nodes.build(nodes_settings, env),
        "claimcontroller": lambda env: claimcontroller.build(controller_settings, env),
        "dynamicresources": lambda env: dynamicresources.build(plugin_settings, env),
        "preemption": lambda env: preemption.build(PreemptionSettings(), env),
        "framework": lambda env: framework.build(framework_settings, env),
    }
