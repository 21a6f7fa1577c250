"""The blocking client is the asynchronous one, call by call."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml

from earmark.client import NotRunning, blocking, sandbox, services
from earmark.client.portal import Portal
from support.client_stack import client_of, example_stack_elsewhere

PAIRS = [
    (services.EarmarkClient, blocking.BlockingClient),
    (sandbox.Sandbox, blocking.BlockingSandbox),
    (sandbox.Cycle, blocking.BlockingCycle),
    (sandbox.Fork, blocking.BlockingFork),
]


@pytest.fixture
def client(repository: Path) -> Iterator[blocking.BlockingClient]:
    examples = repository / "examples/gpu-cluster"
    with (
        example_stack_elsewhere(examples, "cluster", "running.yaml") as elsewhere,
        blocking.BlockingClient(client_of(elsewhere.stack), Portal(elsewhere.loop)) as client,
    ):
        yield client


@pytest.mark.parametrize(("asynchronous", "waiting"), PAIRS)
def test_every_method_has_its_counterpart(asynchronous: type, waiting: type) -> None:
    for name, member in inspect.getmembers(asynchronous):
        if name.startswith("_"):
            continue
        twin = getattr(waiting, name)
        if not callable(member):
            assert isinstance(twin, type(member)), name
            continue
        parameters = [(p.name, p.kind, p.default) for p in inspect.signature(member).parameters.values()]
        assert [(p.name, p.kind, p.default) for p in inspect.signature(twin).parameters.values()] == parameters, name


def test_a_what_if_without_an_event_loop(client: blocking.BlockingClient, repository: Path) -> None:
    urgent = yaml.safe_load((repository / "examples/gpu-cluster/urgent.yaml").read_text(encoding="utf-8"))
    incident, training = client.made_up_pod(urgent, priority=10000), client.pod("training")
    node = client.preemption.dry_run(pod=incident).chosen.node_name
    with client.cycle(incident) as cycle:
        with cycle.fork(node) as fork:
            fork.remove_pod(training)
            assert fork.filter().fits
            fork.add_pod(training)
            assert not fork.filter().fits
        cycle.add_nominated_pod(node, [training])
        assert [item.pod.name for item in client.sandbox().held().nominations] == ["incident"]
    assert client.queue() == ()
    with client.new_sandbox() as other:
        assert other.session.id != client.sandbox().session.id


def test_a_stream_is_read_item_by_item(client: blocking.BlockingClient) -> None:
    portal = client._portal

    async def count() -> AsyncIterator[int]:
        for number in range(10):
            yield number

    found = []
    for number in portal.iterate(count()):
        found.append(number)
        if number == 2:
            break
    assert found == [0, 1, 2]
    assert list(portal.iterate(count())) == list(range(10))


def test_a_folder_without_services_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        NotRunning, match=rf"^{tmp_path}/run: no sockets of earmark; is it running there\? \(make run\)$"
    ):
        blocking.connect(tmp_path)
