"""Sends random requests to the API and random calls to every RPC; nothing of it may be the service's fault.

python tests/soak/soak_requests.py [--count 10000] [--seed N]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from earmark.cel.devices import selector_problem
from earmark.runtime.clock import LoopClock
from earmark.runtime.virtual import run_virtual
from support.apiserver_fuzz import fuzzed
from support.apiserver_http import application
from support.apiserver_registry import Cluster
from support.contract_stack import Stack
from support.rpc_fuzz import Fuzzer


async def requests(seed: int, count: int) -> list[str]:
    """Send requests to the API; return those that were answered with 5xx."""
    cluster = Cluster(selector_problem=selector_problem)
    app = application(cluster.registry, cluster.clock)
    rng = random.Random(seed)
    bad = []
    answered: dict[int, int] = {}
    for _ in range(count):
        answer = await fuzzed(app, rng)
        answered[answer.status] = answered.get(answer.status, 0) + 1
        if answer.status >= 500:
            bad.append(f"{answer.status} {answer.body[:300]!r}")
    print("requests:", dict(sorted(answered.items())))
    return bad


async def calls(clock: LoopClock, seed: int, count: int) -> list[str]:
    """Call the RPCs of all services; return the calls that were answered as no call may be, and what failed."""
    stack = Stack(clock, "inprocess")
    await stack.cluster("gpu-0")
    await stack.start_all()
    await stack.pod("v")
    await stack.pod("p", "high")
    fuzzer = Fuzzer(stack, seed)
    await fuzzer.run(count)
    print("calls:", dict(sorted(fuzzer.answered.items())))
    bad = [*fuzzer.bad, *stack.world.failures]
    bad += [f"{name} is not ready" for name, component in stack.components.items() if not component.ready()]
    await stack.close()
    return bad


def main() -> int:
    """Return 1 if anything was the service's fault."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=10_000, help="of each: requests and calls")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    bad = asyncio.run(requests(options.seed, options.count))
    bad += run_virtual(lambda clock: calls(clock, options.seed, options.count), datetime(2026, 1, 1, tzinfo=UTC))
    for line in bad[:20]:
        print(line)
    print("nothing was the service's fault" if not bad else f"{len(bad)} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
