"""Budgets that a real disruption controller cannot count allow nothing; others keep the status they were given."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from earmark.kube.objects import Pod, PodDisruptionBudget
from earmark.simulation.budgets import allows_nothing, fail_safe

COUNTED = {"disruptionsAllowed": 2, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}


def budget(status: dict[str, int], selector: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}} if selector is None else selector, **spec},
        "status": status,
    }


def bare(app: str = "x", namespace: str = "default", *, controlled: bool = False) -> Pod:
    owners = [{"kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}] if controlled else []
    metadata = {"name": "p", "namespace": namespace, "labels": {"app": app}, "ownerReferences": owners}
    return msgspec.convert({"metadata": metadata}, Pod)


@pytest.mark.parametrize(
    ("manifest", "subject", "expected"),
    [
        (budget(COUNTED, maxUnavailable=1), bare(), True),
        (budget(COUNTED, minAvailable="50%"), bare(), True),
        (budget(COUNTED, minAvailable=2), bare(), False),
        (budget(COUNTED, maxUnavailable=1), bare(controlled=True), False),
        (budget(COUNTED, maxUnavailable=1), bare("other"), False),
        (budget(COUNTED, maxUnavailable=1), bare(namespace="other"), False),
        (budget(COUNTED, {}, maxUnavailable=1), bare(), False),
        (budget({"disruptionsAllowed": 2}, maxUnavailable=1), bare(), False),
    ],
    ids=["maxUnavailable", "percentage", "number", "controlled", "no pod", "namespace", "empty selector", "intended"],
)
def test_which_budgets_cannot_be_counted(manifest: dict[str, Any], subject: Pod, expected: bool) -> None:
    assert allows_nothing(msgspec.convert(manifest, PodDisruptionBudget), [subject]) is expected


def test_the_rest_of_the_status_stays() -> None:
    assert fail_safe(COUNTED) == {**COUNTED, "disruptionsAllowed": 0}
