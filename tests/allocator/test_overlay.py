"""The persistent map behaves as a dict that is copied at every change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from earmark.dynamicresources.overlay import OverlayMap

STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 150), st.integers(1, 5)), max_size=300)


@given(STEPS)
def test_it_is_a_dict_that_is_copied_at_every_change(steps: list[tuple[bool, int, int]]) -> None:
    maps: list[tuple[OverlayMap[int, int], dict[int, int]]] = [(OverlayMap(), {})]
    for add, key, value in steps:
        old, model = maps[-1]
        model = dict(model)
        if add:
            model[key] = value
            maps.append((old.with_item(key, value), model))
        else:
            model.pop(key, None)
            maps.append((old.without(key), model))
    for made, model in maps:
        assert dict(made.items()) == model
        assert len(made) == len(model)
        assert made == OverlayMap(model)
        assert all(made.get(key) == model.get(key) for key in range(151))


def test_maps_of_one_origin_compare_by_what_changed() -> None:
    base = OverlayMap({number: number for number in range(1000)})
    assert base.with_item(5, 6) != base
    assert base.with_item(5, 6).with_item(5, 5) == base
    assert base.without(5).with_item(5, 5) == base


@given(STEPS, st.sets(st.integers(0, 150), max_size=40))
def test_many_keys_at_once_are_taken_out_as_one_after_another(
    steps: list[tuple[bool, int, int]], gone: set[int]
) -> None:
    start: OverlayMap[int, int] = OverlayMap()
    for add, key, value in steps:
        start = start.with_item(key, value) if add else start.without(key)
    before = dict(start.items())
    there = sorted(key for key in gone if key in start)
    single = start
    for key in there:
        single = single.without(key)
    assert start.without_all(there) == single
    assert dict(start.items()) == before
    assert len(start.without_all(there)) == len(before) - len(there)
