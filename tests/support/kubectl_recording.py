"""The requests that kubectl sends for a list of commands: recorded once a version, replayed where there is no kubectl.

Record with `PYTHONPATH=tests python -m support.kubectl_recording KUBECTL NAME` into tests/data/kubectl/NAME.jsonl.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry

from earmark.apiserver import component as apiserver
from earmark.apiserver.app import ApiApplication, Message, Receive, Scope, Send
from earmark.apiserver.settings import ApiServerSettings
from earmark.runtime.clock import SystemClock
from earmark.runtime.component import Environment
from earmark.runtime.ids import SeededIds
from earmark.runtime.tasks import ComponentTasks
from support import kubectl_session

FOLDER = kubectl_session.REPOSITORY / "tests" / "data" / "kubectl"

_NAMESPACE = """<<'EOF'
apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {cost: "%d"}}
EOF"""
_CLUSTER = "examples/gpu-cluster/cluster"
_RUNNING = "examples/gpu-cluster/running.yaml"
COMMANDS = (
    f"kubectl apply -f {_CLUSTER}",
    f"kubectl apply -f {_CLUSTER}",
    f"kubectl create -f {_RUNNING}",
    f"kubectl diff -f {_RUNNING}",
    "kubectl get pods -o wide",
    "kubectl get pods,nodes,resourceclaims -A",
    "kubectl get pod training -o yaml",
    "kubectl get pods -l tier=batch --field-selector status.phase=Running -o jsonpath='{.items[*].metadata.name}'",
    "timeout 2 kubectl get pods -w",
    "kubectl describe pod training",
    "kubectl describe node gpu-a",
    "kubectl label pod training tier=batch",
    "kubectl annotate pod training owner=research",
    'kubectl patch pod training --type=merge -p \'{"metadata":{"labels":{"a":"b"}}}\'',
    'kubectl patch pod training --type=json -p \'[{"op":"remove","path":"/metadata/labels/a"}]\'',
    "kubectl wait --for=jsonpath='{.status.phase}'=Pending pod/training --timeout=5s",
    f"kubectl apply --server-side --field-manager=first -f - {_NAMESPACE % 1}",
    f"kubectl apply --server-side --field-manager=second -f - {_NAMESPACE % 2}",
    f"kubectl apply --dry-run=server -f - {_NAMESPACE % 3}",
    "kubectl create priorityclass soon --value=500 --description=protobuf",
    "kubectl create namespace other",
    "kubectl run quick --image=example.com/quick:1",
    "kubectl events",
    "kubectl get events",
    "kubectl auth can-i delete pods",
    "kubectl auth whoami",
    "kubectl explain resourceclaim.spec.devices",
    "kubectl api-resources",
    "kubectl get --raw /openapi/v2",
    "kubectl taint node gpu-a x=y:NoSchedule",
    "kubectl drain gpu-a --force --timeout=5s",
    "kubectl uncordon gpu-a",
    "kubectl get pod nobody",
    "kubectl delete pod quick --now",
    "kubectl delete namespace team other",
    f"kubectl delete -f {_RUNNING} --wait=false",
    "kubectl delete pods --all --grace-period=0 --force",
)


@dataclass
class Exchange:
    """One request, and how it was answered."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    # Base64, because some are protobuf.
    body: str
    status: int = 0
    media_type: str = ""

    @property
    def content(self) -> bytes:
        """The body."""
        return base64.b64decode(self.body)


class _Recorder(ApiApplication):
    """The application, which notes what passes."""

    exchanges: list[Exchange]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        named = {key.decode(): value.decode("latin-1") for key, value in scope["headers"]}
        kept = {key: named[key] for key in ("accept", "content-type", "user-agent") if key in named}
        kept["user-agent"] = kept.get("user-agent", "").split(" ", 1)[0]
        exchange = Exchange(scope["method"], scope["path"], scope["query_string"].decode(), kept, "")
        self.exchanges.append(exchange)
        chunks: list[bytes] = []

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                chunks.append(message.get("body", b""))
                exchange.body = base64.b64encode(b"".join(chunks)).decode()
            return message

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                exchange.media_type = dict(message["headers"])[b"content-type"].decode()
            await send(message)

        await super().__call__(scope, receiving, sending)


async def record(kubectl: Path) -> list[Exchange]:
    """Run the commands against the API alone; return what was asked."""
    exchanges: list[Exchange] = []
    _Recorder.exchanges = exchanges
    tasks, unused = ComponentTasks("apiserver"), cast(Any, None)
    env = Environment(SystemClock(), SeededIds(1), unused, unused, tasks, unused, CollectorRegistry())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vars(apiserver)["ApiApplication"] = _Recorder
        made = apiserver.build(ApiServerSettings(), env, folder, folder / "kubeconfig")
        await made.start()
        for command in COMMANDS:
            output = await asyncio.to_thread(kubectl_session.run, command, kubectl, folder / "kubeconfig", folder)
            print(f"$ {command}\n{output[:300]}")
        await made.stop()
        await tasks.cancel_all()
    return exchanges


def load(path: Path) -> list[Exchange]:
    """Read a recording."""
    return [Exchange(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Record."""
    exchanges = asyncio.run(record(Path(sys.argv[1])))
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Discovery and OpenAPI are asked for by each command: once is enough.
    seen: set[str] = set()
    lines = []
    for exchange in exchanges:
        line = json.dumps(asdict(exchange), sort_keys=True)
        about = exchange.path.startswith("/openapi") or exchange.path in ("/api", "/apis", "/version")
        if about and line in seen:
            continue
        seen.add(line)
        lines.append(line)
    (FOLDER / f"{sys.argv[2]}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines)} requests")


if __name__ == "__main__":
    main()
