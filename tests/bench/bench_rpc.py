"""What one RPC costs, in process and over a Unix socket, with the interceptors that every call passes.

python tests/bench/bench_rpc.py [--calls 5000] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import grpc

from earmark.runtime.clock import SystemClock
from earmark.runtime.ids import SeededIds
from earmark.runtime.inprocess import InProcessNetwork, InProcessServer
from earmark.runtime.interceptors import ClientInterceptor, ServerInterceptor
from earmark.runtime.server import ServiceServer, open_channel
from earmark.runtime.telemetry import NoopTelemetry, RpcTelemetry, Tracing
from earmark.v1 import nodes_pb2, nodes_pb2_grpc


class Servicer(nodes_pb2_grpc.NodesServiceServicer):
    """Answers at once."""

    async def Hold(self, request: Any, context: Any) -> Any:
        return nodes_pb2.HoldResponse()


async def seconds_a_call(channel: grpc.aio.Channel, calls: int) -> float:
    """Call one after the other; return the wall-clock time of one."""
    stub: Any = nodes_pb2_grpc.NodesServiceStub(channel)
    request = nodes_pb2.HoldRequest(node_name="n1")
    await stub.Hold(request, timeout=5)
    begun = time.perf_counter()
    for _ in range(calls):
        await stub.Hold(request, timeout=5)
    return (time.perf_counter() - begun) / calls


async def in_process(telemetry: RpcTelemetry, calls: int) -> float:
    """Measure the path of the simulation."""
    network, server = InProcessNetwork(), InProcessServer([ServerInterceptor(telemetry)])
    nodes_pb2_grpc.add_NodesServiceServicer_to_server(Servicer(), server)
    network.serve("nodes", server)
    return await seconds_a_call(network.channel("nodes", [ClientInterceptor(telemetry)]), calls)


async def over_a_socket(telemetry: RpcTelemetry, calls: int) -> float:
    """Measure the path between processes, both ends in this one."""
    with tempfile.TemporaryDirectory() as folder:
        server = ServiceServer(f"unix:{folder}/bench.sock", telemetry, grace=0)
        nodes_pb2_grpc.add_NodesServiceServicer_to_server(Servicer(), server)
        async with server, open_channel(server.address, telemetry) as channel:
            return await seconds_a_call(channel, calls)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    tracing = Tracing("bench", SystemClock(), SeededIds(1))
    results = {
        f"{path.__name__}, {name}": round(asyncio.run(path(telemetry, arguments.calls)) * 1e6, 1)
        for path in (in_process, over_a_socket)
        for name, telemetry in (("without spans", NoopTelemetry()), ("with spans", tracing))
    }
    for what, microseconds in results.items():
        print(f"{what:<30} {microseconds:8.1f} µs a call")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
