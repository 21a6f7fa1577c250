"""A settling window with real processes, over sockets and HTTPS: its trace, crashes in it, and an orderly end.

The tests share one `earmark up` and run in their order, in one process (`make test` distributes whole files): each
round's rival is the next round's victim.
"""

from __future__ import annotations

import hashlib
import signal
import time
from collections.abc import AsyncIterator

import pytest

from earmark.client import EarmarkClient
from earmark.kube import objects
from earmark.runtime import semconv
from earmark.runtime.process import SERVICES
from support.e2e_cluster import DRIVER, GRACE, Cluster, pod
from support.e2e_receiver import Receiver, Span
from support.e2e_up import Up, cpu_seconds, gone, rss_mib, until

pytestmark = pytest.mark.timeout(120)

DEALLOCATION = 1.0
# Clocks of one machine, but not one instant.
SLACK = 0.75
# What a busy machine may add to a phase; the phases' order and their least length are what is proved.
LATE = 10.0


class Round:
    """One preemption, from the preemptor's arrival to its binding."""

    _number = 0

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        number = Round._number
        Round._number += 1
        self.victim, self.preemptor, self.rival = f"work-{number}", f"urgent-{number}", f"work-{number + 1}"

    async def begin(self) -> None:
        """The window is open: the victim terminates and the nomination is on record."""
        await self._cluster.prepare(self.victim)
        await self._cluster.until(lambda: self._cluster.runs(self.victim), what=f"{self.victim} runs")
        self.devices = await self._cluster.devices(self.victim)
        self.bystander = await self._cluster.pod("bystander")
        assert self.devices == [f"{DRIVER}/a/gpu-0"]
        await self._cluster.open_window(self.victim, self.preemptor)
        self.uid = (await self._present(self.preemptor)).metadata.uid

    async def victim_is_gone(self) -> None:
        """The victim is gone, its claim is not deallocated yet."""
        await self._cluster.until(lambda: self._cluster.gone(self.victim), what=f"{self.victim} is gone")

    async def rival_comes(self) -> None:
        """A pod that would take the device if nobody held it."""
        await self._cluster.put(pod(self.rival, "batch"))

    async def ends_well(self) -> None:
        """The preemptor gets the victim's device; nobody else had to go."""
        cluster = self._cluster
        await cluster.until(lambda: cluster.runs(self.preemptor), seconds=30, what=f"{self.preemptor} runs")
        assert await cluster.devices(self.preemptor) == self.devices
        assert (await self._present(self.preemptor)).spec.node_name == "a"
        bystander = await self._present("bystander")
        assert self.bystander is not None
        assert bystander.metadata.uid == self.bystander.metadata.uid
        assert bystander.metadata.deletion_timestamp is None
        assert not any(condition.type == "DisruptionTarget" for condition in bystander.status.conditions)
        assert await cluster.devices("bystander") == [f"{DRIVER}/b/gpu-0"]
        assert (await self._present(self.rival)).spec.node_name == ""

    async def clear(self) -> None:
        """Make room for the next round."""
        for name in (self.preemptor, self.victim):
            if await self._cluster.pod(name) is not None:
                await self._cluster.delete(name)
        await self.rival_comes()

    async def _present(self, name: str) -> objects.Pod:
        found = await self._cluster.pod(name)
        assert found is not None, name
        return found

    def trace(self, generation: int) -> str:
        """The id of the window's trace, as every service derives it."""
        digest = hashlib.sha256(f"earmark.settling/{self.uid}/{generation}".encode()).digest()
        return digest[:16].hex()


@pytest.fixture
async def play(cluster: Cluster) -> AsyncIterator[Round]:
    """A round, after which its rival has the device, whatever came of it."""
    made = Round(cluster)
    yield made
    await made.clear()


async def window_of(running: Up, uid: str) -> tuple[int, str]:
    """Generation and trace id of a preemptor's window, as SettlementService has it."""
    async with EarmarkClient(running.runtime) as client:
        (window,) = [item for item in await client.settlements() if item.preemptor.uid == uid]
        return window.generation, window.trace_id


def story(spans: Receiver, running: Up, play: Round, service: str) -> str:
    """What is known of a window whose end nobody has told."""
    told = [f"{span.name} of {span.trace_id} by {span.service}" for span in spans.about(play.uid)]
    return "\n".join([*told, running.log("dynamicresources")[-3000:], running.log(service)[-3000:]])


def test_all_services_are_healthy_in_time(running: Up) -> None:
    assert sorted(running.services()) == sorted(SERVICES)
    print(f"\nstart until healthy: {running.started_after:.1f} s")
    # Five seconds on a quiet machine; tests share theirs, so that the fixture's limit is the only one.
    assert running.started_after > 0


@pytest.mark.kep("D1", "E81", "E95")
async def test_one_trace_tells_t0_to_t4(running: Up, spans: Receiver, play: Round) -> None:
    await play.begin()
    generation, trace_id = await window_of(running, play.uid)
    assert trace_id == play.trace(generation)

    def named(name: str) -> list[Span]:
        return [span for span in spans.trace(trace_id) if span.name == name]

    await play.rival_comes()
    await play.ends_well()
    until(lambda: bool(named(semconv.SETTLING)), 30)
    (root,) = named(semconv.SETTLING)
    (started,) = named(semconv.SETTLING_STARTED)
    (dry_run,) = named(semconv.PREEMPTION_DRY_RUN)
    (execute,) = named(semconv.PREEMPTION_EXECUTE)
    (terminating,) = named(semconv.VICTIM_TERMINATING)
    (deallocating,) = named(semconv.CLAIM_DEALLOCATING)
    (held,) = named(semconv.CAPACITY_HELD)
    phases = (started, dry_run, execute, terminating, deallocating, held)

    # Right parents: the phases are the root's children, and the root is nobody's.
    assert root.parent_id == ""
    assert {span.name: span.parent_id for span in phases} == dict.fromkeys((span.name for span in phases), root.span_id)
    # Whoever did the work says so.
    assert {span.service for span in (dry_run, execute)} == {"earmark-preemption"}
    assert {span.service for span in (root, started, terminating, deallocating, held)} == {"earmark-dynamicresources"}
    # Right order: t0 <= t1 <= t3 <= t4, and the decision before all of it.
    t0, t1, t3, t4 = root.start, terminating.end, deallocating.end, root.end
    assert dry_run.start <= dry_run.end <= execute.start <= execute.end
    assert started.start == pytest.approx(t0, abs=SLACK)
    assert t0 - SLACK < execute.start < t0 + LATE
    assert terminating.start == pytest.approx(t0, abs=SLACK)
    assert GRACE - SLACK < t1 - t0 < GRACE + LATE
    assert deallocating.start == pytest.approx(t1, abs=SLACK)
    assert DEALLOCATION - SLACK < t3 - t1 < DEALLOCATION + LATE
    assert held.start == pytest.approx(t3, abs=0.01)
    assert held.end == pytest.approx(t4, abs=0.01)
    assert 0 <= t4 - t3 < LATE
    # An open window is visible while it is open.
    assert started.received < t4
    # What it was about.
    assert root.attributes["earmark.outcome"] == "scheduled"
    assert root.attributes["earmark.preemptor"] == f"default/{play.preemptor}"
    assert root.attributes[semconv.NODE_NAME] == "a"
    assert started.attributes["earmark.victims"] == execute.attributes["earmark.victims"] == [f"default/{play.victim}"]
    assert held.attributes["earmark.devices"] == play.devices
    assert "victim.deleted" in execute.events
    until(lambda: {"earmark-framework", "earmark-preemption", "earmark-dynamicresources"} <= spans.services(), 30)


TERMINATING, DEALLOCATING = "terminating", "deallocating"
KILLS = (
    *((TERMINATING, (service,)) for service in SERVICES),
    *(
        (DEALLOCATING, services)
        for services in (("dynamicresources",), ("framework",), ("preemption", "claimcontroller"), ("apiserver",))
    ),
)


@pytest.mark.kep("E51", "E100", "E101", "E102")
@pytest.mark.parametrize(
    ("phase", "services"), KILLS, ids=lambda part: part if isinstance(part, str) else "-".join(part)
)
async def test_services_killed_in_the_window_cost_no_second_victim(
    phase: str, services: tuple[str, ...], running: Up, spans: Receiver, play: Round
) -> None:
    await play.begin()
    if phase == DEALLOCATING:
        await play.victim_is_gone()
    told = len(running.lines)
    killed = {service: running.kill(service) for service in services}
    await play.rival_comes()
    await play.ends_well()
    for service, process in killed.items():
        until(lambda service=service, process=process: running.services().get(service, process) != process, 30)  # type: ignore[misc]
        reason = f"{service}: killed by SIGKILL; restarting"
        assert sum(line.startswith(reason) for line in running.lines[told:]) == 1
    # The story is told all the same, and once.

    def roots() -> list[Span]:
        # Every attempt to preempt takes a generation, so that nobody knows which one the window got.
        return [span for span in spans.about(play.uid) if span.name == semconv.SETTLING]

    until(lambda: bool(roots()), 30, lambda: story(spans, running, play, services[0]))
    (root,) = roots()
    assert root.attributes["earmark.outcome"] == "scheduled"
    assert root.end - root.start > GRACE + DEALLOCATION - SLACK
    # Everybody is well again before the next one has to go.
    until(lambda: sorted(running.services()) == sorted(SERVICES), 30)


def test_idle_services_are_small_and_quiet(running: Up) -> None:
    """Told, and held to bounds that only something broken exceeds: the machine has other tests to run."""
    before = {name: cpu_seconds(pid) for name, pid in running.services().items()}
    seconds = 3.0
    time.sleep(seconds)
    print()
    for name, pid in running.services().items():
        share = (cpu_seconds(pid) - before[name]) / seconds
        print(f"{name:<17}{rss_mib(pid):6.1f} MiB RSS  {share:6.1%} CPU idle")
        assert rss_mib(pid) < 180
        # A loop that does not wait would take all it can get.
        assert share < 0.5


async def test_sigterm_ends_everything_with_status_0(running: Up, cluster: Cluster) -> None:
    # In the middle of a window, which is when it is hardest.
    play = Round(cluster)
    await play.begin()
    pids = [*running.services().values()]
    assert len(pids) == len(SERVICES)
    assert running.terminate(20) == 0
    assert gone(pids)
    for name in SERVICES:
        log = running.log(name)
        assert "Traceback" not in log, name
        assert log.count(f"{name} ends: {signal.SIGTERM.name}") == 1, name
