"""The in-process plugins: reasons, codes and scores as upstream."""

from __future__ import annotations

from typing import Any

import pytest

from earmark.framework import events, requests
from earmark.framework.node_info import NodeInfo, PodInfo
from earmark.framework.plugins.interface import FilterPlugin
from earmark.framework.plugins.node_affinity import NodeAffinity
from earmark.framework.plugins.node_name import NodeName
from earmark.framework.plugins.node_ports import NodePorts
from earmark.framework.plugins.node_resources_fit import NodeResourcesFit
from earmark.framework.plugins.node_unschedulable import NodeUnschedulable
from earmark.framework.plugins.taint_toleration import TaintToleration
from earmark.framework.plugins.unsupported_features import UnsupportedFeatures
from earmark.framework.status import Code, Status
from support.framework_objects import info, node, node_info, pod


def run(plugin: FilterPlugin, wanted: PodInfo, on: NodeInfo) -> Status | None:
    result = plugin.pre_filter(wanted)
    if result.status.code is Code.SKIP:
        return None
    return plugin.filter(result.state, wanted, on)


def test_too_little_cpu_left_can_be_cured_by_removing_pods() -> None:
    status = run(NodeResourcesFit(), info("a", cpu="3"), node_info("n", info("b", cpu="2"), cpu="4"))
    assert status == Status(Code.UNSCHEDULABLE, ("Insufficient cpu",))


def test_more_than_the_node_has_cannot_be_cured() -> None:
    status = run(NodeResourcesFit(), info("a", cpu="5"), node_info("n", cpu="4"))
    assert status == Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("Insufficient cpu",))


def test_too_many_pods() -> None:
    status = run(NodeResourcesFit(), info("a"), node_info("n", info("b"), pods="1"))
    assert status == Status(Code.UNSCHEDULABLE, ("Too many pods",))


def test_all_reasons_are_given_in_a_fixed_order() -> None:
    wanted = info(
        "a",
        spec={
            "containers": [
                {
                    "name": "c",
                    "resources": {
                        "requests": {"example.com/b": "1", "example.com/a": "1", "memory": "99Gi", "cpu": "9"}
                    },
                }
            ]
        },
    )
    status = run(NodeResourcesFit(), wanted, node_info("n"))
    assert status is not None
    assert status.reasons == (
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient example.com/a",
        "Insufficient example.com/b",
    )


def test_what_fits_exactly_fits() -> None:
    assert run(NodeResourcesFit(), info("a", cpu="2"), node_info("n", info("b", cpu="2"), cpu="4")) is None


def spec(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"containers": list(containers), **fields}


def asks(cpu: str, **fields: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **fields}


@pytest.mark.parametrize(
    ("what", "milli"),
    [
        (spec(asks("1"), asks("2")), 3000),
        (spec(asks("1"), initContainers=[asks("5"), asks("2")]), 5000),
        (spec(asks("1"), initContainers=[asks("2", restartPolicy="Always"), asks("5")]), 7000),
        (spec(asks("4"), initContainers=[asks("5"), asks("2", restartPolicy="Always")]), 6000),
        (spec(asks("1"), overhead={"cpu": "250m"}), 1250),
        (spec(asks("1"), asks("2"), resources={"requests": {"cpu": "8"}}), 8000),
        (spec({"name": "c", "resources": {"limits": {"cpu": "2"}}}), 2000),
    ],
    ids=["sum", "init", "sidecar-before-init", "sidecar-after-init", "overhead", "pod-level", "limit-only"],
)
def test_requests_of_a_pod(what: dict[str, Any], milli: int) -> None:
    assert requests.pod_requests(pod("a", spec=what))["cpu"] == milli


def test_least_allocated_prefers_the_emptier_node() -> None:
    plugin = NodeResourcesFit()
    wanted = info("a", cpu="1")
    empty, full = node_info("n1"), node_info("n2", info("b", cpu="2"))
    assert plugin.score(None, wanted, empty) > plugin.score(None, wanted, full)


def test_pods_without_requests_spread_by_the_scoring_defaults() -> None:
    assert (info("a").scoring_cpu, info("a").scoring_memory) == (100, 200 * 1024 * 1024)
    assert info("a").requests.get("cpu", 0) == 0


def test_a_cordoned_node_is_refused_unless_tolerated() -> None:
    cordoned = node_info("n", unschedulable=True)
    assert run(NodeUnschedulable(), info("a"), cordoned) == Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) were unschedulable",)
    )
    tolerant = info("a", spec={"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]})
    assert run(NodeUnschedulable(), tolerant, cordoned) is None


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_an_untolerated_taint_keeps_a_pod_away(effect: str) -> None:
    tainted = node_info("n", taints=[f"dedicated:{effect}"])
    assert run(TaintToleration(), info("a"), tainted) == Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) had untolerated taint(s)",)
    )
    tolerant = info("a", spec={"tolerations": [{"key": "dedicated", "operator": "Exists"}]})
    assert run(TaintToleration(), tolerant, tainted) is None


def test_a_soft_taint_only_makes_a_node_less_welcome() -> None:
    plugin = TaintToleration()
    soft = node_info("n", taints=["dedicated:PreferNoSchedule"])
    assert run(plugin, info("a"), soft) is None
    state, ranks = plugin.pre_score(info("a"))
    assert ranks
    raw = [plugin.score(state, info("a"), soft), plugin.score(state, info("a"), node_info("m"))]
    assert list(plugin.normalize(raw)) == [0, 100]


def test_a_node_selector_has_to_match() -> None:
    wanted = info("a", spec={"nodeSelector": {"zone": "a"}})
    assert run(NodeAffinity(), wanted, node_info("n", labels={"zone": "a"})) is None
    assert run(NodeAffinity(), wanted, node_info("n", labels={"zone": "b"})) == Status(
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",)
    )


def affinity(**fields: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": fields}}


def test_affinity_by_name_narrows_the_search() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    wanted = info("a", spec=affinity(requiredDuringSchedulingIgnoredDuringExecution={"nodeSelectorTerms": [term]}))
    assert NodeAffinity().pre_filter(wanted).nodes == frozenset({"n2"})


def test_preferred_affinity_ranks() -> None:
    term = {"weight": 7, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}}
    wanted = info("a", spec=affinity(preferredDuringSchedulingIgnoredDuringExecution=[term]))
    plugin = NodeAffinity()
    state, ranks = plugin.pre_score(wanted)
    assert ranks
    raw = [plugin.score(state, wanted, node_info("n", labels={"zone": zone})) for zone in ("a", "b")]
    assert list(plugin.normalize(raw)) == [100, 0]


def port(number: int, **fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": [{"containerPort": number, "hostPort": number, **fields}]}]}


def test_a_host_port_is_taken_once() -> None:
    reason = "node(s) didn't have free ports for the requested pod ports"
    taken = node_info("n", info("b", spec=port(80)))
    assert run(NodePorts(), info("a", spec=port(80)), taken) == Status(Code.UNSCHEDULABLE, (reason,))
    assert run(NodePorts(), info("a", spec=port(81)), taken) is None
    assert run(NodePorts(), info("a", spec=port(80, protocol="UDP")), taken) is None


def test_host_ports_of_different_addresses_do_not_meet_unless_one_is_every_address() -> None:
    taken = node_info("n", info("b", spec=port(80, hostIP="10.0.0.1")))
    assert run(NodePorts(), info("a", spec=port(80, hostIP="10.0.0.2")), taken) is None
    assert run(NodePorts(), info("a", spec=port(80)), taken) is not None


def test_a_named_node_is_the_only_one() -> None:
    wanted = info("a", node="n1")
    assert run(NodeName(), wanted, node_info("n1")) is None
    assert run(NodeName(), wanted, node_info("n2")) is not None


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ({"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "x"}]}}}, "spec.affinity.podAffinity"),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "x"}]}}}, "spec.affinity.podAntiAffinity"),
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}, "spec.topologySpreadConstraints"),
        ({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}]}, "persistentVolumeClaim"),
    ],
)
def test_what_is_not_implemented_is_refused_by_name(what: dict[str, Any], named: str) -> None:
    status = UnsupportedFeatures().pre_filter(info("a", spec=what)).status
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert named in status.message


@pytest.mark.parametrize(
    "what",
    [
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "x"}}]},
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}},
    ],
)
def test_what_makes_no_demands_is_accepted(what: dict[str, Any]) -> None:
    assert UnsupportedFeatures().pre_filter(info("a", spec=what)).status.code is Code.SKIP


def test_hints_look_at_what_has_changed() -> None:
    wanted = pod("a", cpu="3")
    hint = NodeResourcesFit().hints[events.NODE_ADD]
    assert hint(wanted, None, node("n", cpu="4"))
    assert not hint(wanted, None, node("n", cpu="2"))
    grown = NodeResourcesFit().hints[events.NODE_ALLOCATABLE]
    assert grown(wanted, node("n", cpu="2"), node("n", cpu="4"))
    assert not grown(wanted, node("n", cpu="4"), node("n", cpu="4", extra={"example.com/x": "1"}))
    freed = NodePorts().hints[events.ASSIGNED_POD_DELETE]
    assert freed(pod("a", spec=port(80)), pod("b", spec=port(80), node="n"), None)
    assert not freed(pod("a", spec=port(80)), pod("b", spec=port(81), node="n"), None)
