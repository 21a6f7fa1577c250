"""Expectations say what does not hold, and are silent about what they leave out."""

import re
from typing import Any

import msgspec
import pytest
import yaml
from prometheus_client import CollectorRegistry, Counter, Histogram

from earmark.kube import objects
from earmark.simulation.document import parse_documents
from earmark.simulation.expectation import Expectation
from earmark.simulation.metrics import metric_value
from earmark.simulation.steps.expect import read_expectation
from earmark.simulation.verdict import HeldCapacity, Observation, check
from support.simulation_objects import claim, cluster, pod


def expectation(text: str) -> Expectation:
    (field,) = parse_documents(text, "test")
    return read_expectation(field)


def paths(text: str, seen: Observation) -> list[str]:
    return [failure.path for failure in check(expectation(text), seen, 5.0)]


P = pod(
    "p",
    metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
    spec={"nodeName": "n1", "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
    status={
        "phase": "Running",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/2 nodes are available",
            },
            {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
        ],
        "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-1"}],
    },
)
SEEN = Observation(
    cluster(P, claim("p-gpu-1", [{"device": "d1"}, {"device": "d0"}], ["p", "q"]), claim("free")),
    evictions=("v", "v", "w"),
    nominations=(HeldCapacity("p", "n1", ("gpu.example.com/n1/d0",)),),
)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{}", []),
        ("pods: {p: {node: n1, phase: Running, terminating: true, disruptionTarget: PreemptionByScheduler}}", []),
        ("pods: {p: {node: [n0, n1], nominatedNode: null, reason: Unschedulable, absent: false}}", []),
        ("pods: {p: {node: null}}", ["pods.p.node"]),
        ("pods: {p: {node: [n0, null]}}", ["pods.p.node"]),
        ("pods: {p: {nominatedNode: [n1, null]}}", []),
        ("pods: {p: {message: 'nodes are'}}", []),
        ("pods: {p: {message: ['^nodes', null]}}", ["pods.p.message"]),
        ("pods: {p: {absent: true}}", ["pods.p.absent"]),
        ("pods: {gone: {absent: true}}", []),
        ("pods: {gone: {node: null}}", ["pods.gone"]),
        ("claims: {p/gpu: {devices: [n1/d0, n1/d1], reservedFor: [q, p], allocated: true}}", []),
        ("claims: {p-gpu-1: {devices: [gpu.example.com/n1/d0, n1/d1]}}", []),
        ("claims: {p/gpu: {devices: [n1/d0]}}", ["claims.p/gpu.devices"]),
        ("claims: {p/gpu: {devices: [other.example.com/n1/d0, n1/d1]}}", ["claims.p/gpu.devices"]),
        ("claims: {p/gpu: {reservedFor: []}}", ["claims.p/gpu.reservedFor"]),
        ("claims: {free: {allocated: false, devices: [], reservedFor: []}}", []),
        ("claims: {p/other: {absent: true}}", []),
        ("claims: {p/other: {allocated: true}}", ["claims.p/other"]),
        ("evicted: [w, v]", []),
        ("evicted: [v]", ["evicted"]),
        ("evictions: 3", []),
        ("evictions: [1, 2]", ["evictions"]),
        ("nominations: {p: {node: n1, devices: [n1/d0]}}", []),
        ("nominations: {p: {node: n2, devices: []}}", ["nominations.p.node", "nominations.p.devices"]),
        ("nominations: {}", ["nominations"]),
        ("events: [{object: p, reason: Preempted}]", ["events[0]"]),
        ("metrics: {nothing: 0}", ["metrics.nothing"]),
        ("metrics: {nothing: null}", []),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_named(text: str, wrong: list[str]) -> None:
    assert paths(text, SEEN) == wrong


def test_a_failure_says_when_what_was_wanted_and_what_was_there() -> None:
    (failure,) = check(expectation("pods: {p: {phase: [Pending, Failed]}}"), SEEN, 5.0)
    assert (failure.at, failure.want, failure.got) == (5.0, ["Pending", "Failed"], "Running")


def test_a_stopped_plugin_fails_what_is_expected_of_nominations() -> None:
    (failure,) = check(expectation("nominations: {}"), Observation(cluster(), nominations=None), 0.0)
    assert "stopped" in failure.got


def test_the_claim_of_a_pod_that_is_gone_is_found_by_its_owner() -> None:
    data: dict[str, Any] = yaml.safe_load("""
        metadata:
          name: p-gpu-x
          namespace: default
          annotations: {resource.kubernetes.io/pod-claim-name: gpu}
          ownerReferences: [{kind: Pod, name: p}]
    """)
    seen = Observation(cluster(msgspec.convert(data, objects.ResourceClaim)))
    assert paths("claims: {p/gpu: {allocated: false}}", seen) == []


def test_an_event_is_found_by_object_and_reason() -> None:
    event = objects.Event(
        metadata=objects.ObjectMeta(name="e", namespace="default"),
        regarding=objects.ObjectReference(kind="Pod", namespace="default", name="p"),
        reason="Preempted",
    )
    assert paths("events: [{object: p, reason: Preempted}]", Observation(cluster(event))) == []


def test_metrics_are_summed_over_labels_and_services() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    for registry, count in ((first, 2), (second, 3)):
        Counter("tries", "", ["result"], registry=registry).labels("a").inc(count)
    histogram = Histogram("victims", "", registry=first)
    histogram.observe(7)
    histogram.observe(9)
    values = {name: metric_value([first, second], name) for name in ("tries", "tries_total", "victims", "none")}
    assert values == {"tries": 5, "tries_total": 5, "victims": 2, "none": None}


def test_messages_are_searched_not_matched_whole() -> None:
    (failure,) = check(expectation("pods: {p: {message: '^available'}}"), SEEN, 0.0)
    assert failure.want == re.compile("^available").pattern
