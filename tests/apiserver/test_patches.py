"""The three patches on plain data."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from earmark.apiserver.errors import StatusError
from earmark.apiserver.patches import MERGE_KEYS, MERGED_SETS, json_patch, merge_patch, strategic_patch
from earmark.apiserver.schema import kubernetes

POD = "core_v1.Pod"


@pytest.mark.parametrize(
    ("target", "patch", "want"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_rfc_7386(target: Any, patch: Any, want: Any) -> None:
    before = copy.deepcopy(target)
    assert merge_patch(target, patch) == want
    assert target == before


@pytest.mark.parametrize(
    ("operations", "want"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a", "value": None}], {"a": None}),
        ([{"op": "move", "from": "/a", "path": "/c"}], {"c": [1, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/a/-"}], {"a": [1, 2, 1]}),
        ([{"op": "test", "path": "/a/0", "value": 1}, {"op": "add", "path": "/x~1y", "value": 0}], {"a": [1, 2], "x/y": 0}),
    ],
)  # fmt: skip
def test_rfc_6902(operations: Any, want: Any) -> None:
    target = {"a": [1, 2]}
    assert json_patch(target, operations) == want
    assert target == {"a": [1, 2]}


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ({}, 400),
        ([1], 400),
        ([{"op": "shout", "path": "/a"}], 400),
        ([{"op": "add", "path": "a", "value": 1}], 400),
        ([{"op": "add", "path": "/b"}], 400),
        ([{"op": "remove", "path": "/b"}], 422),
        ([{"op": "replace", "path": "/b", "value": 1}], 422),
        ([{"op": "add", "path": "/a/9", "value": 1}], 422),
        ([{"op": "add", "path": "/a/x", "value": 1}], 422),
        ([{"op": "test", "path": "/a/0", "value": True}], 422),
        ([{"op": "move", "from": "/a", "path": "/a/0"}], 422),
        ([{"op": "add", "path": "/a/-", "value": 1}] * 10_001, 413),
    ],
)
def test_json_patches_that_cannot_be_done(operations: Any, code: int) -> None:
    with pytest.raises(StatusError) as caught:
        json_patch({"a": [1, 2]}, operations)
    assert caught.value.code == code


def strategic(target: dict[str, Any], patch: Any, kind: str = POD) -> Any:
    before = copy.deepcopy(target)
    result = strategic_patch(kubernetes(), kind, target, patch)
    assert target == before
    return result


def test_a_json_patch_cannot_fill_the_memory() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": f"/a/{number}"} for number in range(60)]
    with pytest.raises(StatusError) as caught:
        json_patch({"a": {"x": "y"}}, doubling)
    assert caught.value.code == 422


def test_all_elements_of_a_deleted_key_go() -> None:
    before = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}, {"name": "a", "image": "2"}]}}
    patch = {"spec": {"containers": [{"name": "a", "$patch": "delete"}, {"name": "a", "image": "3"}]}}
    after = strategic_patch(kubernetes(), POD, before, patch)["spec"]["containers"]
    assert after == [{"name": "b"}, {"name": "a", "image": "3"}]


def test_long_lists_merge_in_a_time_that_grows_with_their_length() -> None:
    """Looking through all for each would take hours for what fits into one request."""
    many = 40_000
    compared = 0

    class Counted(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [f"n{number}" for number in range(many)]
    counted = [Counted(name) for name in names]
    patch = {
        "metadata": {"finalizers": counted, "$setElementOrder/finalizers": names[::-1]},
        "spec": {
            "containers": [{"name": name} for name in counted],
            "$setElementOrder/containers": [{"name": name} for name in names],
        },
    }
    after = strategic_patch(kubernetes(), POD, {"metadata": {}, "spec": {}}, patch)
    assert after["metadata"]["finalizers"] == names[::-1]
    assert [item["name"] for item in after["spec"]["containers"]] == names
    assert compared < 20 * many


def test_lists_with_a_key_merge_and_others_are_replaced() -> None:
    target = {
        "spec": {
            "containers": [{"name": "a", "image": "1", "args": ["x"]}, {"name": "b"}],
            "tolerations": [{"key": "k"}],
        }
    }
    patch = {"spec": {"containers": [{"name": "a", "args": ["y"]}, {"name": "c"}], "tolerations": [{"key": "l"}]}}
    assert strategic(target, patch) == {
        "spec": {
            "containers": [{"name": "a", "image": "1", "args": ["y"]}, {"name": "b"}, {"name": "c"}],
            "tolerations": [{"key": "l"}],
        }
    }


def test_directives() -> None:
    target = {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}, "metadata": {"finalizers": ["x", "y"]}}
    assert strategic(target, {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}})["spec"] == {
        "containers": [{"name": "b"}]
    }
    assert strategic(target, {"spec": {"containers": [{"$patch": "replace"}, {"name": "z"}]}})["spec"] == {
        "containers": [{"name": "z"}]
    }
    assert strategic(target, {"spec": {"$patch": "replace", "nodeName": "n"}})["spec"] == {"nodeName": "n"}
    assert strategic(target, {"spec": {"$retainKeys": ["nodeName"], "nodeName": "n"}})["spec"] == {"nodeName": "n"}
    drop = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"], "finalizers": ["z"]}}
    assert strategic(target, drop)["metadata"] == {"finalizers": ["y", "z"]}
    order = {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}}
    assert strategic(target, order)["spec"]["containers"] == [{"name": "b"}, {"name": "a"}]


def test_consumers_of_a_claim_merge_by_uid() -> None:
    target = {"status": {"reservedFor": [{"name": "a", "uid": "1"}, {"name": "b", "uid": "2"}]}}
    patch = {"status": {"reservedFor": [{"$patch": "delete", "uid": "1"}]}}
    assert strategic(target, patch, "resource_v1.ResourceClaim") == {
        "status": {"reservedFor": [{"name": "b", "uid": "2"}]}
    }


@pytest.mark.parametrize("patch", [[], 3, {"spec": {"containers": [{"image": "x"}]}}, {"spec": {"$patch": "burn"}}])
def test_strategic_patches_that_cannot_be_done(patch: Any) -> None:
    with pytest.raises(StatusError) as caught:
        strategic({"spec": {"containers": []}}, patch)
    assert caught.value.code == 400


def test_the_tables_name_fields_that_exist() -> None:
    types = kubernetes().types
    for where in (*MERGE_KEYS, *MERGED_SETS):
        owner, _, field = where.rpartition(".")
        element = types[owner]["fields"][field].removeprefix("[]")
        if where in MERGE_KEYS:
            assert MERGE_KEYS[where] in types[element]["fields"]
