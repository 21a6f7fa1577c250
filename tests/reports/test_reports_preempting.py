"""Reports on who is evicted, who gets the device, and who waits. Each is a scenario file."""

import pytest

from support.reports_play import holds


@pytest.mark.kep("R29")
def test_r29_preemption_for_a_device() -> None:
    holds("r29-preemption-for-a-device")


@pytest.mark.kep("R30")
def test_r30_one_round_of_victims() -> None:
    holds("r30-one-round-of-victims")


@pytest.mark.kep("R31")
def test_r31_who_may_take_it() -> None:
    holds("r31-who-may-take-it")


@pytest.mark.kep("R32")
def test_r32_claim_of_two_pods() -> None:
    holds("r32-claim-of-two-pods")


@pytest.mark.kep("R33")
def test_r33_device_that_comes_free_beside() -> None:
    holds("r33-device-that-comes-free-beside")


@pytest.mark.kep("R34")
def test_r34_slow_deletes() -> None:
    holds("r34-slow-deletes")


@pytest.mark.kep("R38")
def test_r38_nominated_node_goes_bad() -> None:
    holds("r38-nominated-node-goes-bad")


@pytest.mark.kep("R39")
def test_r39_victim_that_does_not_end() -> None:
    holds("r39-victim-that-does-not-end")


@pytest.mark.kep("R43")
def test_r43_cascade() -> None:
    holds("r43-cascade")


@pytest.mark.kep("R44")
def test_r44_equal_victims() -> None:
    holds("r44-equal-victims")


@pytest.mark.kep("R46")
def test_r46_only_the_condition() -> None:
    holds("r46-only-the-condition")


@pytest.mark.kep("R47")
def test_r47_bound_but_not_running() -> None:
    holds("r47-bound-but-not-running")


@pytest.mark.kep("R60")
def test_r60_controllers_put_victims_back() -> None:
    holds("r60-controllers-put-victims-back")


@pytest.mark.kep("R62")
def test_r62_two_tenants() -> None:
    holds("r62-two-tenants")
