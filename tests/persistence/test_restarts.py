"""What a restart in the settling window finds: a record that counts, one that does not, and none at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from earmark.apiserver.registry import Registry
from earmark.dynamicresources import component as dynamicresources
from earmark.dynamicresources.settings import Settings as DynamicResourcesSettings
from earmark.framework import component as framework
from earmark.framework.record import ANNOTATION
from earmark.framework.settings import FrameworkSettings
from earmark.kube.api import PatchType
from earmark.kube.resources import BY_KIND
from earmark.simulation.composition import SCHEDULER_NAMES, builders
from earmark.simulation.fleet import Builder
from earmark.simulation.hooks import Hooks
from earmark.simulation.player import play
from earmark.simulation.report import Outcome
from earmark.simulation.scenario import Scenario, TimelineEntry
from earmark.simulation.stage import Stage
from support.simulation_player import complaint, scenario

GATES = {"DRAPreemption": True}


@dataclass(frozen=True)
class Do:
    """A step of a test's own."""

    what: Callable[[Stage], Any]
    key: str = "do"

    async def run(self, stage: Stage) -> None:
        result = self.what(stage)
        if result is not None:
            await result

    def describe(self) -> Mapping[str, Any]:
        return {}


@dataclass
class Run:
    """The scenario of the kill tests with steps of the test's own in the middle of the window (13 s: victims gone)."""

    scenario: Scenario
    build: Callable[[Scenario], Mapping[str, Builder]] = builders
    registries: list[Registry] = field(default_factory=list)

    def play(self, *steps: tuple[float, Callable[[Stage], Any]]) -> Outcome:
        timeline = [*self.scenario.timeline, *(TimelineEntry(at, Do(what)) for at, what in steps)]
        timeline.sort(key=lambda entry: entry.at or 0.0)
        hooks = Hooks(prepare=self.registries.append, builders=self.build)
        return play(replace(self.scenario, timeline=tuple(timeline)), 0, hooks)

    def preemptor(self) -> dict[str, Any]:
        found = self.registries[0].lookup("Pod", "default", "preemptor")
        assert found is not None
        return found

    def annotation(self) -> str | None:
        text: str | None = self.preemptor()["metadata"].get("annotations", {}).get(ANNOTATION)
        return text

    def annotate(self, text: str) -> None:
        patch = {"metadata": {"annotations": {ANNOTATION: text}}}
        self.registries[0].patch(BY_KIND["Pod"], "default", "preemptor", patch, PatchType.MERGE)


@pytest.fixture
def actuation() -> Scenario:
    return scenario(Path(__file__).parent / "actuation.yaml", "actuation")


async def restart_both(stage: Stage) -> None:
    for service in ("framework", "dynamicresources"):
        await stage.stop(service)
    for service in ("dynamicresources", "framework"):
        await stage.start(service)


def held(run: Run, into: list[Any]) -> Callable[[Stage], None]:
    """Note what the API says of the preemptor."""
    return lambda stage: into.append((run.preemptor()["status"].get("nominatedNodeName"), run.annotation()))


@pytest.mark.kep("E52")
def test_the_record_is_written_with_the_nomination_and_says_all_of_it(actuation: Scenario) -> None:
    run, seen = Run(actuation), list[Any]()
    outcome = run.play((10.5, held(run, seen)))
    assert outcome.ok, complaint(outcome)
    node, text = seen[0]
    record = json.loads(text)
    assert (node, record["version"], record["node"], record["generation"]) == ("n1", 1, "n1", 1)
    assert [victim["name"] for victim in record["victims"]] == ["cheap-1", "cheap-2"]
    mine = record["plugins"]["DynamicResources"]
    assert [item["device"] for item in mine["results"][0]["allocation"]["devices"]["results"]] == ["gpu-0", "gpu-1"]
    assert len(mine["victimClaims"]) == 2


@pytest.mark.kep("E51", "E52")
def test_a_restart_of_both_in_the_window_loses_nothing(actuation: Scenario) -> None:
    outcome = Run(actuation).play((13.0, restart_both))
    assert outcome.ok, complaint(outcome)


def broken(**changes: Any) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **changes})


@pytest.mark.kep("E52", "F44")
@pytest.mark.parametrize(
    "change",
    [
        lambda text: "no JSON",
        lambda text: text[:-20],
        broken(version=2),
        broken(deployment="another cluster's"),
        broken(node="n2"),
        broken(generation=0),
        broken(victims="all of them"),
    ],
    ids=["no JSON", "half", "version", "deployment", "node", "generation", "victims"],
)
def test_a_record_that_is_none_is_ignored_and_goes_with_the_next_patch(
    actuation: Scenario, change: Callable[[str], str]
) -> None:
    run, seen = Run(actuation), list[str]()

    async def tamper(stage: Stage) -> None:
        await stage.stop("framework")
        text = run.annotation()
        assert text is not None
        seen.append(change(text))
        run.annotate(seen[0])
        await restart_plugin(stage)
        await stage.start("framework")

    outcome = run.play((13.0, tamper))
    # What was freed is not held any more; but nobody gets a device twice, and nobody waits for ever.
    assert not outcome.violations, complaint(outcome)
    assert run.preemptor()["spec"].get("nodeName"), complaint(outcome)
    assert run.annotation() != seen[0]


async def restart_plugin(stage: Stage) -> None:
    await stage.stop("dynamicresources")
    await stage.start("dynamicresources")


@pytest.mark.kep("E52")
def test_a_plugins_record_of_another_generation_is_ignored_by_the_plugin(actuation: Scenario) -> None:
    run = Run(actuation)

    async def tamper(stage: Stage) -> None:
        await stage.stop("framework")
        text = run.annotation()
        assert text is not None
        record = json.loads(text)
        record["plugins"]["DynamicResources"]["generation"] = 7
        run.annotate(json.dumps(record))
        await restart_plugin(stage)
        await stage.start("framework")

    outcome = run.play((13.0, tamper))
    assert not outcome.violations, complaint(outcome)
    assert run.preemptor()["spec"].get("nodeName"), complaint(outcome)


def without_persistence(scenario: Scenario) -> Mapping[str, Builder]:
    scheduler = FrameworkSettings(scheduler_names=SCHEDULER_NAMES, feature_gates=GATES, nomination_persistence="none")
    plugin = DynamicResourcesSettings(feature_gates=GATES, nomination_persistence="none")
    return {
        **builders(scenario),
        "framework": lambda env: framework.build(scheduler, env),
        "dynamicresources": lambda env: dynamicresources.build(plugin, env),
    }


@pytest.mark.kep("F44")
def test_without_persistence_nothing_is_written_and_all_else_is_the_same(actuation: Scenario) -> None:
    run, seen = Run(actuation, without_persistence), list[Any]()
    outcome = run.play((12.0, held(run, seen)))
    assert outcome.ok, complaint(outcome)
    assert seen == [("n1", None)]
    assert run.annotation() is None


@pytest.mark.kep("F44")
def test_without_persistence_a_restart_forgets_the_hold_and_may_preempt_once_more(actuation: Scenario) -> None:
    run, seen = Run(actuation, without_persistence), list[Any]()
    outcome = run.play((13.0, restart_both), (13.5, held(run, seen)))
    # As the alpha: nobody awaits the claims any more, one more preemption is allowed, and no device is allocated twice.
    assert seen == [("n2", None)]
    assert not outcome.violations, complaint(outcome)
    assert run.preemptor()["spec"].get("nodeName"), complaint(outcome)
    assert len(outcome.evictions) <= 4


@pytest.mark.kep("E52")
def test_a_nomination_that_somebody_has_cleared_does_not_come_back_by_its_record(actuation: Scenario) -> None:
    run, seen = Run(actuation), list[Any]()

    async def outside(stage: Stage) -> None:
        await stage.stop("framework")
        await stage.patch("Pod", "default", "preemptor", "status", {"status": {"nominatedNodeName": None}})
        await stage.start("framework")

    outcome = run.play((10.5, outside), (10.6, held(run, seen)))
    # The invariants compare what is held with what is nominated.
    assert not outcome.violations, complaint(outcome)
    assert seen[0][0] is None
    assert run.preemptor()["spec"].get("nodeName"), complaint(outcome)
