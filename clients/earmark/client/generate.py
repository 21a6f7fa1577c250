"""Writes rpcs.py and blocking_rpcs.py from the protos: `python -m earmark.client.generate [FOLDER]`.

The methods, their types and their docstrings are the contract's. A test compares the files with what this makes. A new
service needs, besides, its process in calls.py and its attribute in EarmarkClient and BlockingClient.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from earmark.client.contract import Parameter, Rpc, Service, descriptors, services

_NOTE = "Generated from protos/earmark/v1 by earmark.client.generate. Never edited."


def _docstring(text: str, parameters: Sequence[Parameter], indent: str) -> list[str]:
    width = 120 - len(indent)
    lines = _wrapped(text, width - 6)
    told = [parameter for parameter in parameters if parameter.comment]
    if not told and len(lines) == 1:
        return [f'{indent}"""{lines[0]}"""']
    if not told:
        return [f'{indent}"""{lines[0]}', *(indent + line for line in lines[1:]), f'{indent}"""']
    out = [f'{indent}"""{lines[0]}', *(indent + line for line in lines[1:]), "", f"{indent}Args:"]
    for parameter in told:
        first, *rest = _wrapped(f"{parameter.name}: {parameter.comment}", width - 8)
        out += [f"{indent}    {first}", *(f"{indent}        {line}" for line in rest)]
    return [*out, f'{indent}"""']


def _rpc_docstring(rpc: Rpc) -> list[str]:
    return _docstring(rpc.comment or f"Call {rpc.name}.", rpc.parameters, " " * 8)


def _wrapped(text: str, width: int) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return [*lines, line]


def _signature(rpc: Rpc) -> list[str]:
    parameters = [f"        {p.name}: {p.type} = {p.default}," for p in rpc.parameters]
    return ["        self,", "        *,", *parameters, "        timeout: float | None = None,"]


def _session(parameter: Parameter) -> str:
    if parameter.comment.startswith("Optional"):
        # Without one the call is about the services' real state, and not about a sandbox.
        return "session"
    return "session or await self._caller.session()"


def asynchronous(service: Service) -> list[str]:
    """Return the lines of a service's async class."""
    out = [f"class {service.class_name}(Rpcs):", *_docstring(service.comment, (), "    "), ""]
    for rpc in service.rpcs:
        returned = f"AsyncIterator[{rpc.response}]" if rpc.streaming else rpc.response
        out += [f"    async def {rpc.python_name}(", *_signature(rpc), f"    ) -> {returned}:"]
        out += [*_rpc_docstring(rpc), "        fields: dict[str, Any] = {"]
        for p in rpc.parameters:
            out.append(f'            "{p.name}": {_session(p) if p.name == "session" else p.name},')
        out += ["        }", f"        request = new_request({rpc.request}, fields)"]
        arguments = f'"{service.name}", "{rpc.name}", request, {rpc.response}, timeout'
        if rpc.streaming:
            out += [f"        async for answer in self._caller.stream({arguments}):", "            yield answer", ""]
        else:
            out += [f"        return await self._caller.unary({arguments})", ""]
    return out


def blocking(service: Service) -> list[str]:
    """Return the lines of a service's blocking class."""
    out = [f"class Blocking{service.class_name}:", *_docstring(service.comment, (), "    "), ""]
    out += [f"    def __init__(self, portal: Portal, rpcs: {service.class_name}) -> None:"]
    out += ["        self._portal = portal", "        self._rpcs = rpcs", ""]
    for rpc in service.rpcs:
        returned = f"Iterator[{rpc.response}]" if rpc.streaming else rpc.response
        out += [f"    def {rpc.python_name}(", *_signature(rpc), f"    ) -> {returned}:", *_rpc_docstring(rpc)]
        given = ", ".join(f"{name}={name}" for name in [*(p.name for p in rpc.parameters), "timeout"])
        how = "iterate" if rpc.streaming else "call"
        out += [f"        return self._portal.{how}(self._rpcs.{rpc.python_name}({given}))", ""]
    return out


def module(docstring: str, imports: Sequence[str], classes: Sequence[Sequence[str]]) -> str:
    """Return the text of a module, not yet formatted."""
    body = "\n\n".join("\n".join(lines) for lines in classes)
    header = f'"""{docstring}\n\n{_NOTE}\n"""\n\nfrom __future__ import annotations\n\n'
    return header + "\n".join(imports) + "\n\n" + body


def generate(protos: Path) -> dict[str, str]:
    """Return the generated modules by file name, formatted."""
    files = descriptors(protos)
    found = list(services(files))
    messages = [
        "from google.protobuf import duration_pb2, timestamp_pb2",
        f"from earmark.v1 import {', '.join(sorted({Path(file.name).stem + '_pb2' for file in files.file}))}",
    ]
    made = {
        "rpcs.py": module(
            "Every RPC of every service, one class a service.",
            [
                "from collections.abc import AsyncIterator, Iterable, Mapping",
                "from typing import Any",
                "from earmark.client.calls import Rpcs, new_request",
                *messages,
            ],
            [asynchronous(service) for service in found],
        ),
        "blocking_rpcs.py": module(
            "Every RPC for callers without an event loop.",
            [
                "from collections.abc import Iterable, Iterator, Mapping",
                "from earmark.client.portal import Portal",
                f"from earmark.client.rpcs import {', '.join(service.class_name for service in found)}",
                *messages,
            ],
            [blocking(service) for service in found],
        ),
    }
    return {name: _formatted(name, text) for name, text in made.items()}


def _formatted(name: str, text: str) -> str:
    for command in (["check", "--quiet", "--fix", "--select", "I,F401"], ["format", "--quiet"]):
        run = [sys.executable, "-m", "ruff", *command, "--stdin-filename", f"clients/earmark/client/{name}", "-"]
        text = subprocess.run(run, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    """Write the modules beside this one, or into the folder that is named."""
    here = Path(__file__).resolve().parent
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else here
    for name, text in generate(here.parent.parent.parent / "protos").items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
