"""Reports on what is allocated: which devices, and when there are none. Each is a scenario file."""

import pytest

from support.reports_play import holds


@pytest.mark.kep("R02")
def test_r02_distinct_values() -> None:
    holds("r02-distinct-values")


@pytest.mark.kep("R04")
def test_r04_all_of_counted_devices() -> None:
    holds("r04-all-of-counted-devices")


@pytest.mark.kep("R06")
def test_r06_all_is_at_least_one() -> None:
    holds("r06-all-is-at-least-one")


@pytest.mark.kep("R07")
def test_r07_all_beside_an_incomplete_pool() -> None:
    holds("r07-all-beside-an-incomplete-pool")


@pytest.mark.kep("R10")
def test_r10_next_shareable_device() -> None:
    holds("r10-next-shareable-device")


@pytest.mark.kep("R11")
def test_r11_capacity_near_the_largest_number() -> None:
    holds("r11-capacity-near-the-largest-number")


@pytest.mark.kep("R12")
def test_r12_precise_capacity() -> None:
    holds("r12-precise-capacity")


@pytest.mark.kep("R14")
def test_r14_admin_access_uses_no_counters() -> None:
    holds("r14-admin-access-uses-no-counters")


@pytest.mark.kep("R15")
def test_r15_taints_with_all_and_admin_access() -> None:
    holds("r15-taints-with-all-and-admin-access")


@pytest.mark.kep("R16")
def test_r16_tolerations_of_the_result() -> None:
    holds("r16-tolerations-of-the-result")


@pytest.mark.kep("R21")
def test_r21_better_alternative_wins() -> None:
    holds("r21-better-alternative-wins")


@pytest.mark.kep("R22")
def test_r22_incomplete_pools() -> None:
    holds("r22-incomplete-pools")


@pytest.mark.kep("R23")
def test_r23_key_that_a_device_lacks() -> None:
    holds("r23-key-that-a-device-lacks")


@pytest.mark.kep("R25")
def test_r25_claim_of_two_new_pods() -> None:
    holds("r25-claim-of-two-new-pods")


@pytest.mark.kep("R28")
def test_r28_claim_without_a_container() -> None:
    holds("r28-claim-without-a-container")
