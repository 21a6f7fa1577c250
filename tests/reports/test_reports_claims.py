"""Reports on claims: who holds them, when they are free, where they come from. Each is a scenario file."""

import pytest

from support.reports_play import holds


@pytest.mark.kep("R50")
def test_r50_last_user_of_a_claim() -> None:
    holds("r50-last-user-of-a-claim")


@pytest.mark.kep("R51")
def test_r51_claim_without_an_owner() -> None:
    holds("r51-claim-without-an-owner")


@pytest.mark.kep("R52")
def test_r52_template_comes_and_goes() -> None:
    holds("r52-template-comes-and-goes")


@pytest.mark.kep("R54")
def test_r54_node_name_is_set() -> None:
    holds("r54-node-name-is-set")


@pytest.mark.kep("R55")
def test_r55_force_deleted() -> None:
    holds("r55-force-deleted")
