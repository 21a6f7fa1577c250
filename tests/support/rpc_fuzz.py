"""Random requests of every RPC: messages filled from their descriptors with values that are plausible, odd or absurd."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor

from earmark.kube import objects
from earmark.v1 import scheduler_plugin_pb2
from support.contract_rpcs import RPCS, Rpc
from support.contract_stack import Stack

_DEEPEST = 6
_TEXTS = (
    "", "default", "n1", "nope", "v", "p", "v-gpu", "gpu", "gpu-0", "gpu.example.com", "high", "test", "\x00", "é" * 40,
    "x" * 5000, "../..", "a/b", "DRAPreemption", "DynamicResources", "NaN", '{"version":1}', "0", "-1",
)  # fmt: skip
_NUMBERS = (0, 0, 1, 1, 2, 3, 7, 100, -1, 2**31 - 1, -(2**31), 2**53, 2**63 - 1, -(2**63))
# What a call may end with when its caller is to blame, or too early or too late.
REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
CALL_SECONDS = 0.5


class Filler:
    """Fills messages."""

    def __init__(
        self, rng: random.Random, texts: Sequence[str], numbers: Sequence[int], sessions: Sequence[Any]
    ) -> None:
        """`texts` and `numbers` are values that mean something at the moment: UIDs, epochs, cycles."""
        self._rng = rng
        self._sessions = sessions
        self._texts = (*_TEXTS, *texts, *texts)
        self._numbers = (*_NUMBERS, *numbers, *numbers)

    def message(self, kind: Any, depth: int = 0) -> Any:
        """Return a message of a class."""
        made = kind()
        self._fill(made, depth)
        return made

    def _fill(self, made: Any, depth: int) -> None:
        rng = self._rng
        for field in made.DESCRIPTOR.fields:
            if rng.random() < 0.3 or (depth > _DEEPEST and field.message_type is not None):
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                self._map(made, field, depth)
            elif field.is_repeated:
                values = getattr(made, field.name)
                for _ in range(rng.choice((0, 1, 1, 2, 3, 40 if depth < 2 else 1))):
                    if field.message_type is not None:
                        self._fill(values.add(), depth + 1)
                    else:
                        values.append(self._value(field))
            elif field.name == "session" and self._sessions and rng.random() < 0.8:
                made.session.CopyFrom(rng.choice(self._sessions))
            elif field.message_type is not None:
                getattr(made, field.name).SetInParent()
                self._fill(getattr(made, field.name), depth + 1)
            else:
                setattr(made, field.name, self._value(field))

    def _map(self, made: Any, field: FieldDescriptor, depth: int) -> None:
        of_key, of_value = field.message_type.fields
        values = getattr(made, field.name)
        for _ in range(self._rng.choice((0, 1, 2))):
            key = self._value(of_key)
            if of_value.message_type is not None:
                self._fill(values[key], depth + 1)
            else:
                values[key] = self._value(of_value)

    def _value(self, field: FieldDescriptor) -> Any:
        rng = self._rng
        match field.cpp_type:
            case FieldDescriptor.CPPTYPE_STRING:
                text = rng.choice(self._texts)
                return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
            case FieldDescriptor.CPPTYPE_BOOL:
                return rng.random() < 0.5
            case FieldDescriptor.CPPTYPE_ENUM:
                return rng.choice([value.number for value in field.enum_type.values] + [77, -1])
            case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
                return rng.choice((0.0, 1.0, -1.0, 1e300, float("nan"), float("inf"))) if field.type == 1 else 0.5
            case FieldDescriptor.CPPTYPE_INT32:
                return _clamp(rng.choice(self._numbers), -(2**31), 2**31 - 1)
            case FieldDescriptor.CPPTYPE_UINT32:
                return _clamp(rng.choice(self._numbers), 0, 2**32 - 1)
            case FieldDescriptor.CPPTYPE_UINT64:
                return _clamp(rng.choice(self._numbers), 0, 2**64 - 1)
            case _:
                return rng.choice(self._numbers)


def _clamp(value: int, least: int, most: int) -> int:
    return min(max(value, least), most)


class Fuzzer:
    """Makes calls and keeps what later calls can mean: sessions, cycles, UIDs."""

    def __init__(self, stack: Stack, seed: int) -> None:
        self._stack = stack
        self._rng = random.Random(seed)
        self._names = sorted(RPCS)
        self._texts: list[str] = []
        self._numbers: list[int] = []
        self._sessions: list[Any] = []
        self.answered: dict[str, int] = {}
        # The calls that were answered as no call may be.
        self.bad: list[str] = []

    async def run(self, count: int) -> None:
        """Make so many calls."""
        pods = await self._stack.world.api.list(objects.Pod)
        self._texts += [pod.metadata.uid for pod in pods.items]
        for number in range(count):
            if number % 50 == 0:
                await self._open()
            rpc = RPCS[self._rng.choice(self._names)]
            request = Filler(self._rng, self._texts, self._numbers, self._sessions).message(rpc.request)
            code, details = await self._call(rpc, request)
            self.answered[code.name] = self.answered.get(code.name, 0) + 1
            if code is not grpc.StatusCode.OK and code not in REFUSALS:
                self.bad.append(f"{rpc.name}: {code.name}: {details}: {str(request)[:600]}")

    async def _open(self) -> None:
        """Open a sandbox session, as a handshake that is right does, so that later calls get past it."""
        rpc = RPCS["SchedulerPluginService/OpenSession"]
        right = rpc.request(kind=scheduler_plugin_pb2.SESSION_KIND_SANDBOX, feature_gates={"DRAPreemption": True})
        code, details = await self._call(rpc, right)
        assert code is grpc.StatusCode.OK, details

    async def _call(self, rpc: Rpc, request: Any) -> tuple[grpc.StatusCode, str]:
        """Call a method, of a stream one message; return how it ended and the text."""
        try:
            running = rpc.on(self._stack.channel(rpc.process))(request, timeout=CALL_SECONDS)
            if rpc.streaming:
                await anext(aiter(running), None)
                running.cancel()
            else:
                self._remember(await running)
        except grpc.aio.AioRpcError as error:
            code: grpc.StatusCode = error.code()
            return code, error.details() or ""
        return grpc.StatusCode.OK, ""

    def _remember(self, message: Any) -> None:
        for field, value in message.ListFields():
            if field.is_repeated or field.name not in (
                "session",
                "cycle",
                "session_id",
                "cycle_id",
                "id",
                "epoch",
                "uid",
            ):
                continue
            if field.name == "session":
                self._sessions = [*self._sessions[-3:], value]
            if field.message_type is not None:
                self._remember(value)
            elif isinstance(value, str):
                self._texts = [*self._texts[-20:], value]
            elif isinstance(value, int):
                self._numbers = [*self._numbers[-10:], value]
