"""The nominator: differences, order and its own writes (upstream A15, F6, F9, F29, F30)."""

from __future__ import annotations

import pytest

from earmark.framework.nominator import NominatedPod, Nominator
from support.framework_objects import pod


def nominated(name: str, node: str, *, priority: int = 0, generation: int = 0) -> NominatedPod:
    return NominatedPod(f"uid-{name}", "default", name, node, priority, generation)


@pytest.mark.kep("D17", "F9")
def test_an_update_of_the_pod_that_does_not_know_of_the_nomination_yet_changes_nothing() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("p", "n1", generation=3))
    change = nominator.pod_seen(pod("p"), pod("p", metadata={"labels": {"a": "b"}}))
    assert change.lost is None
    assert nominator.node_of("uid-p") == "n1"


@pytest.mark.kep("F9", "E46")
def test_a_nomination_is_lost_when_its_node_changes_and_not_when_it_is_set_again() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("p", "n1", generation=3))
    assert nominator.nominate(nominated("p", "n1", generation=3)).lost is None
    lost = nominator.nominate(nominated("p", "n2", generation=4)).lost
    assert lost is not None
    assert (lost.node, lost.generation) == ("n1", 3)


@pytest.mark.kep("F30")
def test_somebody_else_who_changes_the_node_replaces_the_nomination() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("p", "n1", generation=3))
    change = nominator.pod_seen(pod("p", nominated="n1"), pod("p", nominated="n9"))
    assert change.lost is not None
    found = nominator.get("uid-p")
    assert found is not None
    assert (found.node, found.generation) == ("n9", 0)


@pytest.mark.kep("E45")
def test_somebody_else_who_clears_the_node_clears_the_nomination() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("p", "n1", generation=3))
    assert nominator.pod_seen(pod("p", nominated="n1"), pod("p")).lost is not None
    assert nominator.get("uid-p") is None


@pytest.mark.kep("F29")
def test_a_state_older_than_the_own_write_tells_nothing() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("p", "n2", generation=4))
    nominator.writing("uid-p")
    stale = pod("p", nominated="n1", metadata={"resourceVersion": "10"})
    assert nominator.pod_seen(pod("p"), stale).lost is None
    nominator.wrote("uid-p", 20)
    assert nominator.pod_seen(pod("p"), stale).lost is None
    fresh = pod("p", nominated="n1", metadata={"resourceVersion": "21"})
    assert nominator.pod_seen(pod("p", nominated="n2"), fresh).lost is not None


def test_a_failed_write_lets_the_api_speak_again() -> None:
    nominator = Nominator()
    nominator.writing("uid-p")
    nominator.wrote("uid-p", 0)
    nominator.pod_seen(None, pod("p", nominated="n1"))
    assert nominator.node_of("uid-p") == "n1"


@pytest.mark.kep("F6")
def test_nominations_of_a_node_are_applied_by_priority_and_then_by_age() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("late", "n", priority=1, generation=1))
    nominator.nominate(nominated("high", "n", priority=9, generation=2))
    nominator.nominate(nominated("later", "n", priority=1, generation=3))
    nominator.nominate(nominated("late", "n", priority=1, generation=1))
    assert [n.name for n in nominator.on_node("n")] == ["high", "late", "later"]


def test_a_new_generation_on_the_same_node_is_younger() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("a", "n", generation=1))
    nominator.nominate(nominated("b", "n", generation=2))
    nominator.nominate(nominated("a", "n", generation=3))
    assert [n.name for n in nominator.on_node("n")] == ["b", "a"]


def test_a_node_without_nominations_is_forgotten() -> None:
    nominator = Nominator()
    nominator.nominate(nominated("a", "n", generation=1))
    nominator.forget("uid-a")
    assert nominator.nodes() == ()
    assert nominator.on_node("n") == ()
