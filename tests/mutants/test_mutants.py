"""Every seeded fault is noticed, by the scenario that is there for it."""

from __future__ import annotations

import pytest

from earmark.dynamicresources import hints
from support.mutants_actuating import no_wake_up_at_the_end_of_a_hold
from support.mutants_catalogue import FAULTS, Fault
from support.mutants_patching import in_place
from support.mutants_running import Played, catches, own_scenarios


@pytest.fixture(scope="module")
def scenarios() -> dict[str, Played]:
    return own_scenarios()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_fault_is_caught(fault: Fault, scenarios: dict[str, Played]) -> None:
    catch = next(catches(fault, scenarios), None)
    assert catch is not None, f"nothing notices: {fault.text}"
    assert catch.scenario == fault.likely, f"{fault.likely} does not notice any more, {catch.scenario} does"


def test_after_a_fault_everything_is_as_it_was() -> None:
    before = dict(vars(hints))
    with in_place(no_wake_up_at_the_end_of_a_hold):
        assert vars(hints) != before
    assert vars(hints) == before
