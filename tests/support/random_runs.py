"""Plays random scenarios and says what is wrong with a run.

Nobody tries pods again only because time has passed: whoever is forgotten stays forgotten, and is found when the
framework is started again at the end.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from earmark.apiserver.registry import Registry
from earmark.dynamicresources.component import DynamicResources
from earmark.dynamicresources.settings import DRA_PREEMPTION
from earmark.framework import component as framework
from earmark.framework.settings import FrameworkSettings
from earmark.runtime.component import Component, Environment
from earmark.runtime.virtual import VirtualDeadlockError, VirtualLivelockError
from earmark.simulation import Hooks, Outcome, Scenario, play
from earmark.simulation.composition import SCHEDULER_NAMES, builders
from earmark.simulation.disturbance import WatchTrouble, troubled_hooks
from earmark.simulation.fleet import Builder
from earmark.simulation.scenario import TimelineEntry
from earmark.simulation.stage import Stage, StepRefused
from earmark.simulation.steps.base import Step
from earmark.simulation.steps.services import Restart
from support.random_holds import HoldWatch
from support.random_oracle import Photo, explained, for_the_flush, take_photo, unanswered
from support.random_scenarios import RandomScenario, Trouble, random_scenario

# Longer than a run: the flush of pods that sleep would hide that nobody has woken them.
_NEVER_SECONDS = 1e6


@dataclass
class Run:
    """A run of a random scenario and what came of it."""

    random: RandomScenario
    complaints: list[str] = field(default_factory=list)
    outcome: Outcome | None = None
    # Steps that the cluster refused.
    refused: set[int] = field(default_factory=set)
    # The API when nothing was left to happen, and again after the framework was started anew.
    photos: list[Photo] = field(default_factory=list)

    def keep(self, folder: Path) -> Path:
        """Write the scenario into a folder, to be played by `earmark simulate`."""
        return self.random.write(folder, frozenset(self.refused), self.complaints)


@dataclass(frozen=True)
class _Optional:
    """A step that may be refused."""

    step: Step
    number: int
    run_of: Run

    @property
    def key(self) -> str:
        return self.step.key

    def describe(self) -> Mapping[str, Any]:
        return self.step.describe()

    async def run(self, stage: Stage) -> None:
        try:
            await self.step.run(stage)
        except StepRefused:
            self.run_of.refused.add(self.number)


@dataclass(frozen=True)
class _Calm:
    """Ends all refusals and delays of the API."""

    registry: list[Registry]
    key: ClassVar[str] = "calm"

    def describe(self) -> Mapping[str, Any]:
        return {}

    async def run(self, stage: Stage) -> None:
        self.registry[0].faults.clear()


@dataclass(frozen=True)
class _TakePhoto:
    """Remembers what the API holds."""

    registry: list[Registry]
    photos: list[Photo]
    key: ClassVar[str] = "photo"

    def describe(self) -> Mapping[str, Any]:
        return {}

    async def run(self, stage: Stage) -> None:
        self.photos.append(take_photo(self.registry[0]))


def run_seed(seed: int) -> Run:
    """Play the scenario of a seed and check it."""
    run = Run(random_scenario(seed))
    registry: list[Registry] = []
    scenario = run.random.scenario()
    timeline = [
        dataclasses.replace(entry, step=_Optional(entry.step, number, run)) if number in run.random.optional else entry
        for number, entry in enumerate(scenario.timeline)
    ]
    last = max((entry.at or 0.0 for entry in timeline), default=0.0)
    photo = TimelineEntry(None, _TakePhoto(registry, run.photos))
    timeline += [TimelineEntry(last + 1, _Calm(registry)), photo, TimelineEntry(None, Restart("framework")), photo]
    logging.disable(logging.ERROR)
    try:
        run.outcome = play(dataclasses.replace(scenario, timeline=tuple(timeline)), seed, _hooks(run, registry))
    except (VirtualDeadlockError, VirtualLivelockError) as error:
        # A loop that cannot even be ended.
        run.complaints.append(f"the run does not come to its end: {error}")
        return run
    finally:
        logging.disable(logging.NOTSET)
    run.complaints += [f"{item.at:g}s {item.invariant}: {item.detail}" for item in run.outcome.violations]
    if len(run.photos) == 2:
        run.complaints += _compare(run)
    return run


def _compare(run: Run) -> list[str]:
    before, after = run.photos
    complaints = [f"at the end: {text}" for text in unanswered(before)]
    if for_the_flush(before):
        # What the restart changes may be its doing.
        return complaints
    for name, pod in before.pending.items():
        now = after.pods.get(name)
        if now is None:
            complaints.append(f"{name} is evicted when the framework is started again")
        elif now["spec"].get("nodeName"):
            complaints.append(f"{name} was forgotten: it is bound when the framework is started again")
        elif not pod["status"].get("nominatedNodeName") and now["status"].get("nominatedNodeName"):
            complaints.append(f"{name} was forgotten: it is nominated when the framework is started again")
    gone = [name for name in before.pods if name not in after.pods and name not in before.pending]
    complaints += [f"{name} is evicted when the framework is started again" for name in gone]
    return complaints + [f"after the restart: {text}" for text in explained(after)]


def _hooks(run: Run, registry: list[Registry]) -> Hooks:
    hooks = Hooks()
    trouble = run.random.trouble
    if trouble != Trouble():
        watches = WatchTrouble(trouble.late, trouble.longest_seconds, trouble.broken)
        hooks = troubled_hooks(run.random.seed, watches)
    slowest = max(
        (float(e["delay"]["by"].rstrip("s")) for e in run.random.spec["timeline"] if "delay" in e), default=0.0
    )
    return dataclasses.replace(
        hooks,
        prepare=registry.append,
        builders=lambda scenario: _builders(scenario, HoldWatch(run.complaints)),
        staleness=hooks.staleness + 2 * slowest
    )  # fmt: skip


def _builders(scenario: Scenario, watch: HoldWatch) -> Mapping[str, Builder]:
    settings = FrameworkSettings(
        scheduler_names=SCHEDULER_NAMES,
        feature_gates={DRA_PREEMPTION: scenario.feature_gates.get(DRA_PREEMPTION, False)},
        max_unschedulable_seconds=_NEVER_SECONDS,
    )
    usual = builders(scenario)

    def plugin(env: Environment) -> Component:
        component = usual["dynamicresources"](env)
        assert isinstance(component, DynamicResources)
        watch.listen(component)
        return component

    return {**usual, "dynamicresources": plugin, "framework": lambda env: framework.build(settings, env)}
