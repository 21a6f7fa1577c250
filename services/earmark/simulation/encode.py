"""An outcome as one line of JSON, the same bytes for the same run."""

from __future__ import annotations

import json
from typing import Any

from earmark.simulation.report import Outcome, PodRecord, SettlementRecord


def seconds(value: float | None) -> int | float | None:
    """Return a moment as JSON has it: whole seconds as an integer, others to the microsecond."""
    if value is None:
        return None
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded


def outcome_data(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome in the shape of the format's `--json`."""
    return {
        "scenario": outcome.scenario,
        "ok": outcome.ok,
        "seed": outcome.seed,
        "failures": [
            {"at": seconds(failure.at), "path": failure.path, "want": failure.want, "got": failure.got}
            for failure in outcome.failures
        ],
        "violations": [
            {"at": seconds(violation.at), "invariant": violation.invariant, "detail": violation.detail}
            for violation in outcome.violations
        ],
        "evicted": list(outcome.evicted),
        "evictions": len(outcome.evictions),
        "pods": {name: _pod(record) for name, record in sorted(outcome.pods.items())},
        "settlements": [_settlement(record) for record in outcome.settlements],
        "log": [
            {"at": seconds(entry.at), "service": entry.service, "event": entry.event, **entry.details}
            for entry in outcome.log
        ],
    }


def outcome_json(outcome: Outcome) -> str:
    """Return the outcome as one line of JSON."""
    return json.dumps(outcome_data(outcome), ensure_ascii=False, separators=(",", ":"))


def _pod(record: PodRecord) -> dict[str, Any]:
    return {
        "node": record.node,
        "nominatedNode": record.nominated_node,
        "phase": record.phase,
        "reason": record.reason,
        "message": record.message,
        "devices": list(record.devices),
    }


def _settlement(record: SettlementRecord) -> dict[str, Any]:
    return {
        "preemptor": record.preemptor,
        "node": record.node,
        "victims": list(record.victims),
        "claims": list(record.claims),
        "t0": seconds(record.t0),
        "t1": seconds(record.t1),
        "t3": seconds(record.t3),
        "t4": seconds(record.t4),
    }
