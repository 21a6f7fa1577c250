"""Reads the protos: services, methods, fields and what their comments say. For earmark.client.generate only."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

_SCALARS = {
    Field.TYPE_STRING: "str",
    Field.TYPE_BYTES: "bytes",
    Field.TYPE_BOOL: "bool",
    Field.TYPE_DOUBLE: "float",
    Field.TYPE_FLOAT: "float",
}
_DEFAULTS = {"str": '""', "bytes": 'b""', "bool": "False", "float": "0.0", "int": "0"}
_OUTSIDE = {
    ".google.protobuf.Duration": "duration_pb2.Duration",
    ".google.protobuf.Timestamp": "timestamp_pb2.Timestamp",
}
# The numbers of FileDescriptorProto.service, ServiceDescriptorProto.method, FileDescriptorProto.message_type and
# DescriptorProto.field: how source locations name things.
_SERVICE, _METHOD, _MESSAGE, _FIELD = 6, 2, 4, 2


@dataclass(frozen=True)
class Parameter:
    """One field of a request."""

    name: str
    type: str
    default: str
    comment: str


@dataclass(frozen=True)
class Rpc:
    """One method."""

    name: str
    comment: str
    request: str
    response: str
    streaming: bool
    parameters: tuple[Parameter, ...]

    @property
    def python_name(self) -> str:
        """In snake case."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", self.name).lower()


@dataclass(frozen=True)
class Service:
    """One service."""

    name: str
    comment: str
    rpcs: tuple[Rpc, ...]

    @property
    def class_name(self) -> str:
        """FrameworkService becomes FrameworkRpcs."""
        return self.name.removesuffix("Service") + "Rpcs"


def descriptors(protos: Path) -> descriptor_pb2.FileDescriptorSet:
    """Return the protos with their comments."""
    files = sorted(str(path.relative_to(protos)) for path in protos.glob("earmark/v1/*.proto"))
    with tempfile.NamedTemporaryFile(suffix=".pb") as out:
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I", ".", "--include_source_info"]
        subprocess.run([*command, f"--descriptor_set_out={out.name}", *files], cwd=protos, check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes())


def services(files: descriptor_pb2.FileDescriptorSet) -> Iterator[Service]:
    """Iterate over the services, in the order of files and declarations."""
    # The module of each message and enum.
    homes = {
        f".{file.package}.{name}": f"{Path(file.name).stem}_pb2"
        for file in files.file
        for name in [*(message.name for message in file.message_type), *(enum.name for enum in file.enum_type)]
    }
    requests = {
        f".{file.package}.{message.name}": _parameters(message, homes, _comments(file), (_MESSAGE, position))
        for file in files.file
        for position, message in enumerate(file.message_type)
    }
    for file in files.file:
        comments = _comments(file)
        for number, service in enumerate(file.service):
            rpcs = tuple(
                Rpc(
                    method.name,
                    comments.get((_SERVICE, number, _METHOD, position), ""),
                    _message(file, method.input_type),
                    _message(file, method.output_type),
                    method.server_streaming,
                    requests[method.input_type],
                )
                for position, method in enumerate(service.method)
            )
            yield Service(service.name, comments.get((_SERVICE, number), ""), rpcs)


def _comments(file: descriptor_pb2.FileDescriptorProto) -> dict[tuple[int, ...], str]:
    return {
        tuple(location.path): " ".join(location.leading_comments.split())
        for location in file.source_code_info.location
        if location.leading_comments
    }


def _message(file: descriptor_pb2.FileDescriptorProto, name: str) -> str:
    """The message of an RPC is declared in the RPC's own file."""
    return f"{Path(file.name).stem}_pb2.{name.rpartition('.')[2]}"


def _parameters(
    message: descriptor_pb2.DescriptorProto,
    homes: Mapping[str, str],
    comments: Mapping[tuple[int, ...], str],
    path: tuple[int, ...],
) -> tuple[Parameter, ...]:
    maps = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    found = []
    for position, field in enumerate(message.field):
        comment = comments.get((*path, _FIELD, position), "")
        entry = maps.get(field.type_name.rpartition(".")[2]) if field.type == Field.TYPE_MESSAGE else None
        if entry is not None:
            key, value = (_type(part, homes) for part in entry.field)
            found.append(Parameter(field.name, f"Mapping[{key}, {value}] | None", "None", comment))
            continue
        plain = _type(field, homes)
        if field.label == Field.LABEL_REPEATED:
            found.append(Parameter(field.name, f"Iterable[{plain}]", "()", comment))
        elif field.type in (Field.TYPE_MESSAGE, Field.TYPE_ENUM):
            found.append(Parameter(field.name, f"{plain} | None", "None", comment))
        else:
            found.append(Parameter(field.name, plain, _DEFAULTS[plain], comment))
    return tuple(found)


def _type(field: Field, homes: Mapping[str, str]) -> str:
    if field.type == Field.TYPE_MESSAGE:
        return _OUTSIDE.get(field.type_name) or f"{homes[field.type_name]}.{field.type_name.rpartition('.')[2]}"
    if field.type == Field.TYPE_ENUM:
        return f"{homes[field.type_name]}.{field.type_name.rpartition('.')[2]}.ValueType"
    return _SCALARS.get(field.type, "int")
