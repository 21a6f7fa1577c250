"""What can be set for the preemption service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """A scheduler plugin with NominationExtensions."""

    name: str
    """The plugin's name as the framework knows it."""

    service: str
    """The name of the service that it runs in."""


@dataclass(frozen=True, slots=True)
class PreemptionSettings:
    """Settings of the preemption service."""

    nomination_plugins: tuple[PluginSettings, ...] = (PluginSettings("DynamicResources", "dynamicresources"),)
    """Plugins that are asked whether a nominated pod may preempt again, and told of nominations, in this order."""

    min_candidate_nodes_percentage: int = 10
    """Of the nodes where preemption may help, the share that is enough as candidates, in percent."""

    min_candidate_nodes_absolute: int = 100
    """The number of candidates that is enough, where the percentage gives less."""

    round_chunk_nodes: int = 2000
    """Nodes in one DryRunFilter call; a round over more nodes is sent in several."""

    dry_run_timeout_seconds: float = 30.0
    """Deadline of one DryRunFilter call."""

    call_timeout_seconds: float = 5.0
    """Deadline of every other call to the framework and to plugins."""

    parallel_victims: int = 16
    """Victims that are deleted at the same time."""

    write_attempts: int = 5
    """How often a write to the API is tried while it conflicts or the API is away."""

    first_retry_seconds: float = 0.1
    """The wait before the second try; it doubles with each further one, with jitter."""

    remembered_executions: int = 1000
    """Finished executions whose result is kept, so that a repeated Execute changes nothing."""

    eviction_loop_rounds: int = 3
    """After so many rounds in which a pod had pods of other schedulers evicted in vain it holds off; 0: never."""

    eviction_loop_wait_seconds: float = 60.0
    """How long it holds off the first time; it doubles with each further round."""

    eviction_loop_longest_wait_seconds: float = 3600.0
    """The longest such time."""

    reporting_controller: str = "earmark"
    """The reportingController of events."""
