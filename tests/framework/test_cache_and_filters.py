"""Cache, snapshots, forks, the two passes and the texts (upstream A2, A6, A7, A11)."""

from __future__ import annotations

import pytest

from earmark.framework import fit, sampling
from earmark.framework.cache import Cache, Snapshot
from earmark.framework.filtering import NodeFilter, Verdict, combine, pre_filter
from earmark.framework.fit import Diagnosis
from earmark.framework.node_info import PodInfo
from earmark.framework.nominator import NominatedPod, Nominator
from earmark.framework.plugins.registry import filter_plugins
from earmark.framework.status import Status, unresolvable, unschedulable
from support.framework_objects import info, node, node_info, pod


def cluster(*nodes: str, cpu: str = "4") -> tuple[Cache, Snapshot]:
    cache, snapshot = Cache(), Snapshot()
    for name in nodes:
        cache.put_node(node(name, cpu=cpu))
    cache.update_snapshot(snapshot)
    return cache, snapshot


def test_a_snapshot_stays_as_it_is_until_it_is_brought_up_to_date() -> None:
    cache, snapshot = cluster("n1", "n2")
    before = snapshot.nodes["n2"]
    cache.assume(info("a", cpu="1"), "n1")
    assert not snapshot.nodes["n1"].pods
    cache.update_snapshot(snapshot)
    assert list(snapshot.nodes["n1"].pods) == ["uid-a"]
    assert snapshot.nodes["n2"] is before, "only what changed is taken over"


def test_a_frozen_snapshot_does_not_follow() -> None:
    cache, snapshot = cluster("n1")
    frozen = snapshot.frozen()
    cache.assume(info("a"), "n1")
    cache.remove_node("n1")
    cache.update_snapshot(snapshot)
    assert snapshot.order == []
    assert not frozen.nodes["n1"].pods


def test_an_assumed_pod_is_confirmed_by_the_api_and_then_not_forgotten() -> None:
    cache, _ = cluster("n1")
    cache.assume(info("a", cpu="1"), "n1")
    assert cache.assumed("uid-a")
    cache.put_pod(info("a", cpu="1", node="n1"))
    assert not cache.assumed("uid-a")
    assert not cache.forget("uid-a")
    assert cache.nodes()["n1"].requested["cpu"] == 1000


def test_a_forgotten_pod_leaves_nothing_behind() -> None:
    cache, _ = cluster("n1")
    before = cache.nodes()["n1"].shape()
    cache.assume(info("a", cpu="1"), "n1")
    assert cache.forget("uid-a")
    assert cache.nodes()["n1"].shape() == before


def test_a_pod_that_comes_before_its_node_is_counted_when_the_node_comes() -> None:
    cache = Cache()
    cache.put_pod(info("a", cpu="1", node="late"))
    cache.put_node(node("late"))
    assert cache.nodes()["late"].requested["cpu"] == 1000


def test_a_node_that_comes_back_has_its_pods() -> None:
    cache, _ = cluster("n1")
    cache.put_pod(info("a", cpu="1", node="n1"))
    cache.remove_node("n1")
    cache.put_node(node("n1"))
    assert list(cache.nodes()["n1"].pods) == ["uid-a"]


def test_a_pod_cannot_be_assumed_twice() -> None:
    cache, _ = cluster("n1")
    cache.assume(info("a"), "n1")
    with pytest.raises(ValueError, match="already"):
        cache.assume(info("a"), "n1")


def test_a_fork_leaves_the_original_alone() -> None:
    ports = {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 1}]}]}
    base = node_info("n", info("a", cpu="1"), info("b", spec=ports))
    fork = base.without_pods(("uid-a", "uid-b", "uid-unknown"))
    assert (dict(fork.requested), fork.ports, len(fork.pods)) == ({}, (), 0)
    assert (base.requested["cpu"], len(base.ports), len(base.pods)) == (1000, 1, 2)
    assert fork.with_pods((info("a", cpu="1"), info("b", spec=ports))).shape() == base.shape()


def filter_for(wanted: PodInfo, snapshot: Snapshot, nominator: Nominator, *pending: PodInfo) -> NodeFilter:
    known = {item.uid: item for item in pending}
    return NodeFilter(pre_filter(filter_plugins(), wanted).active, wanted, snapshot, nominator, known.get)


def nominate(nominator: Nominator, name: str, node_name: str, priority: int) -> None:
    nominator.nominate(NominatedPod(f"uid-{name}", "default", name, node_name, priority, generation=1))


@pytest.mark.kep("E58", "E69")
def test_a_nominated_pod_of_equal_priority_keeps_its_place() -> None:
    _, snapshot = cluster("n1", cpu="2")
    nominator = Nominator()
    nominate(nominator, "p", "n1", 5)
    holder = info("p", cpu="2", priority=5)
    verdict = filter_for(info("q", cpu="1", priority=5), snapshot, nominator, holder).verdict("n1")
    assert verdict.first == Status(unschedulable().code, ("Insufficient cpu",), "NodeResourcesFit")
    assert verdict.nominated == ("uid-p",)


@pytest.mark.kep("E70")
def test_a_nominated_pod_of_lower_priority_is_passed_over() -> None:
    _, snapshot = cluster("n1", cpu="2")
    nominator = Nominator()
    nominate(nominator, "p", "n1", 5)
    holder = info("p", cpu="2", priority=5)
    verdict = filter_for(info("q", cpu="1", priority=6), snapshot, nominator, holder).verdict("n1")
    assert verdict == Verdict(None, None, ())


def test_a_pod_is_not_in_its_own_way() -> None:
    _, snapshot = cluster("n1", cpu="2")
    nominator = Nominator()
    nominate(nominator, "p", "n1", 5)
    wanted = info("p", cpu="2", priority=5)
    assert filter_for(wanted, snapshot, nominator, wanted).verdict("n1").first is None


def test_equal_nodes_are_answered_once() -> None:
    cache, snapshot = cluster("n1", "n2", "n3")
    cache.assume(info("a", cpu="1"), "n3")
    cache.update_snapshot(snapshot)
    assert snapshot.shape("n1") == snapshot.shape("n2") != snapshot.shape("n3")


def test_equal_shapes_with_other_labels_are_told_apart() -> None:
    cache, snapshot = Cache(), Snapshot()
    cache.put_node(node("n1", labels={"zone": "a"}))
    cache.put_node(node("n2", labels={"zone": "b"}))
    cache.update_snapshot(snapshot)
    node_filter = filter_for(info("q", spec={"nodeSelector": {"zone": "b"}}), snapshot, Nominator())
    assert node_filter.verdict("n1").first is not None
    assert node_filter.verdict("n2").first is None


def test_a_dry_run_filters_without_the_removed_pods() -> None:
    cache, snapshot = cluster("n1", cpu="2")
    cache.put_pod(info("v", cpu="2", node="n1"))
    cache.update_snapshot(snapshot)
    node_filter = filter_for(info("q", cpu="1", priority=1), snapshot, Nominator())
    assert node_filter.verdict("n1").first is not None
    assert node_filter.verdict_without("n1", ("uid-v",)).first is None
    assert snapshot.nodes["n1"].pods, "the snapshot stays"


FIRST, SECOND = unschedulable("pass 1"), unschedulable("pass 2")
REMOTE = unschedulable("remote")


@pytest.mark.parametrize(
    ("verdict", "remotes", "want"),
    [
        (Verdict(None, None), [(None, False)], None),
        (Verdict(FIRST, FIRST), [], FIRST),
        (Verdict(None, SECOND, ("p",)), [(REMOTE, True)], REMOTE),
        (Verdict(None, SECOND, ("p",)), [(REMOTE, False)], SECOND),
        (Verdict(None, SECOND, ("p",)), [(None, False)], SECOND),
        (Verdict(None, None, ("p",)), [(REMOTE, False)], REMOTE),
        (Verdict(None, None), [(None, False), (REMOTE, False)], REMOTE),
    ],
)
def test_pass_one_of_everything_comes_before_pass_two_of_everything(
    verdict: Verdict, remotes: list[tuple[Status | None, bool]], want: Status | None
) -> None:
    assert combine(verdict, remotes) == want


def test_the_histogram_counts_reasons_and_sorts_as_text() -> None:
    diagnosis = Diagnosis()
    for number in range(10):
        diagnosis.reject_node(f"a{number}", unschedulable("x").by("X"))
    for number in range(2):
        diagnosis.reject_node(f"b{number}", unschedulable("y", "z").by("Y"))
    diagnosis.post_filter_message = "preemption: none"
    text = "0/13 nodes are available: 10 x, 2 y, 2 z. preemption: none"
    assert fit.fit_error(diagnosis, 13) == text
    assert list(diagnosis.unschedulable_plugins) == ["X", "Y"]


def test_a_message_of_pre_filter_stands_for_all_nodes() -> None:
    diagnosis = Diagnosis(absent=unresolvable("no"), pre_filter_message="no")
    assert fit.fit_error(diagnosis, 3) == "0/3 nodes are available: no."


def test_reasons_of_nodes_that_were_not_looked_at_are_counted() -> None:
    diagnosis = Diagnosis(absent=unresolvable("node(s) didn't satisfy plugin(s) [NodeAffinity]"))
    diagnosis.reject_node("n1", unschedulable("Insufficient cpu"))
    text = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    assert fit.fit_error(diagnosis, 3) == text


@pytest.mark.parametrize(
    ("nodes", "percentage", "want"),
    [(99, 0, 99), (99, 10, 99), (1000, 0, 420), (5000, 0, 500), (10_000, 0, 500), (1000, 5, 100), (6000, 0, 300)],
)
def test_how_many_feasible_nodes_are_enough(nodes: int, percentage: int, want: int) -> None:
    assert sampling.feasible_nodes_to_find(nodes, percentage) == want


def test_the_search_goes_round() -> None:
    search = sampling.NodeSearch()
    assert search.order(["a", "b", "c"]) == ["a", "b", "c"]
    search.looked_at(2, 3)
    assert search.order(["a", "b", "c"]) == ["c", "a", "b"]
    assert search.order([]) == []


def test_pods_with_bad_quantities_are_told_apart() -> None:
    with pytest.raises(ValueError, match="quantit"):
        PodInfo.of(pod("a", cpu="lots"))


def protected(name: str, topology: str, **term: object) -> PodInfo:
    rule = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": "noisy"}}, **term}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
    return info(name, node="n1", spec={"affinity": {"podAntiAffinity": required}})


@pytest.mark.parametrize(
    ("term", "labels", "refused"),
    [
        ({}, {"app": "noisy"}, ["n1", "n2"]),
        ({}, {"app": "quiet"}, []),
        ({"namespaces": ["other"]}, {"app": "noisy"}, []),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, {"app": "noisy"}, ["n1", "n2"]),
        ({"topologyKey": "unknown"}, {"app": "noisy"}, []),
    ],
)
def test_anti_affinity_of_running_pods_is_respected(
    term: dict[str, object], labels: dict[str, str], refused: list[str]
) -> None:
    cache, snapshot = Cache(), Snapshot()
    for name, zone in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        cache.put_node(node(name, labels={"zone": zone}))
    cache.put_pod(protected("running", "zone", **term))
    cache.update_snapshot(snapshot)
    wanted = info("q", metadata={"labels": labels})
    active = pre_filter(filter_plugins(cache.guards), wanted).active
    node_filter = NodeFilter(active, wanted, snapshot, Nominator(), lambda _uid: None)
    assert [name for name in snapshot.order if node_filter.verdict(name).first is not None] == refused
    cache.remove_pod("uid-running")
    assert cache.guards() == ()
