"""What kube-scheduler 1.37.2 chose on random clusters, with the full text of its condition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from support.preemption_stock import Case, CpuCluster, case_of

KEPT = Path(__file__).resolve().parent.parent / "data" / "preemption" / "stock-choices.yaml"


def load(path: Path) -> list[Case]:
    with path.open(encoding="utf-8") as file:
        return [case_of(document) for document in yaml.load_all(file, Loader=yaml.CSafeLoader) if document]


def check(case: Case) -> None:
    decision, condition, rounds = CpuCluster(case).decide()
    pod = case.expected["pods"]["preemptor"]
    chosen = decision.chosen
    assert (chosen.node.name if chosen else None) == pod["nominatedNode"], case.name
    assert ({victim.pod.name for victim in chosen.victims} if chosen else set()) == case.evicted, case.name
    assert re.search(pod["message"], condition), (case.name, condition)
    assert rounds <= max(len(node.pods) for node in CpuCluster(case).situation().nodes) + 3


@pytest.mark.parametrize("case", load(KEPT), ids=lambda case: case.name)
def test_the_stock_schedulers_choice_comes_out(case: Case) -> None:
    check(case)


def test_all_recorded_choices_come_out(shared: Path) -> None:
    recorded = shared / "scenarios" / "stock" / "cpu-preemption.yaml"
    if not recorded.is_file():
        pytest.skip(f"{recorded.name} is not in ../shared/scenarios/stock")
    cases = load(recorded)
    assert len(cases) == 98
    for case in cases:
        check(case)
