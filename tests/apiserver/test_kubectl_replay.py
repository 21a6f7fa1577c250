"""What two kubectls were recorded to send is answered as it was then: for machines without a kubectl."""

from __future__ import annotations

from collections import Counter

import pytest

from earmark.runtime.ids import SeededIds
from support.apiserver_http import application, ask
from support.apiserver_registry import Cluster
from support.kubectl_recording import FOLDER, load

RECORDINGS = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("recording", RECORDINGS, ids=[path.stem for path in RECORDINGS])
async def test_recorded_requests_of_kubectl_are_answered_as_then(recording: object) -> None:
    ids = SeededIds(1)
    cluster = Cluster(new_uid=ids.uuid, below=ids.below)
    app = application(cluster.registry, cluster.clock)
    kinds: Counter[str] = Counter()
    for exchange in load(recording):  # type: ignore[arg-type]
        answer = await ask(
            app, exchange.method, exchange.path, body=exchange.content, query=exchange.query, headers=exchange.headers
        )  # fmt: skip
        what = f"{exchange.method} {exchange.path}?{exchange.query}"
        assert (answer.status, answer.headers["content-type"]) == (exchange.status, exchange.media_type), (
            what, answer.body[:500],
        )  # fmt: skip
        kinds[exchange.headers.get("content-type", "") or exchange.method] += 1
        if "watch=" in exchange.query:
            kinds["watch"] += 1
    assert {"application/json", "application/apply-patch+yaml", "application/merge-patch+json", "watch",
            "application/json-patch+json", "application/strategic-merge-patch+json",
            "application/vnd.kubernetes.protobuf"} <= set(kinds)  # fmt: skip


def test_two_versions_are_recorded() -> None:
    assert [path.stem for path in RECORDINGS] == ["kubectl-1.33", "kubectl-1.37"]
