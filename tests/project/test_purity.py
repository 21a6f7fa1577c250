"""What decides is pure, and nothing reads a clock or rolls dice but by what it is given."""

from __future__ import annotations

import ast
from pathlib import Path

# Modules that wait, call or compose: the shells around the cores. Whatever is not named here is a core.
SHELLS = {
    "framework": {
        "attempt",
        "binding",
        "component",
        "core",
        "hooks",
        "loop",
        "preempting",
        "remote",
        "service",
        "sessions",
        "trace",
        "wake_ups",
        "__main__",
    },
    "dynamicresources": {
        "binding",
        "caches",
        "component",
        "explanationservice",
        "nominationservice",
        "plugin",
        "postfilter",
        "service",
        "settlementservice",
        "settlementwatch",
        "settling",
        "__main__",
    },
    "preemption": {"trace", "execute", "peers", "evaluate", "component", "service", "__main__"},
    "claimcontroller": {"controller", "component", "service", "__main__"},
    "nodes": {"kubelets", "component", "service", "__main__"},
    "cel": set(),
}

IMPURE = {"asyncio", "grpc", "socket", "ssl", "threading", "subprocess", "aiohttp", "sqlite3", "earmark.runtime"}
# Derives ids from values, and is where every service finds them: no effect, no clock.
PURE = {"earmark.runtime.settling_trace", "earmark.runtime.settling_trace.settling_trace"}

# Modules that hold a source of time or randomness, or make keys that nobody may guess.
SOURCES = {
    "services/earmark/runtime/clock.py",
    "services/earmark/runtime/ids.py",
    "services/earmark/apiserver/tls.py",
    "services/earmark/apiserver/access.py",
}

FORBIDDEN_MODULES = {"random", "secrets"}
FORBIDDEN_CALLS = {
    "time.time",
    "time.monotonic",
    "time.perf_counter",
    "time.sleep",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "datetime.datetime.now",
    "uuid.uuid1",
    "uuid.uuid4",
    "uuid4",
    "os.urandom",
}


def imported(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def test_the_cores_of_the_services_neither_wait_nor_call(repository: Path) -> None:
    found = []
    for service, shells in SHELLS.items():
        root = repository / "services/earmark" / service
        # A name that is left behind would excuse whoever gets it next.
        found += [f"{service}/{name}: no such module" for name in sorted(shells) if not (root / f"{name}.py").exists()]
        for file in sorted(root.rglob("*.py")):
            if file.relative_to(root).parts[0].removesuffix(".py") in shells:
                continue
            names = set(imported(ast.parse(file.read_text(encoding="utf-8")))) - PURE
            bad = {name for name in names if any(name == word or name.startswith(f"{word}.") for word in IMPURE)}
            found += [f"{service}/{file.relative_to(root)}: {name}" for name in sorted(bad)]
    assert found == []


def test_time_and_randomness_come_from_what_is_passed_in(repository: Path) -> None:
    found = []
    for file in sorted((repository / "services/earmark").rglob("*.py")):
        name = str(file.relative_to(repository))
        if name in SOURCES or name.startswith("services/earmark/v1/"):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found += [f"{name}: import {module}" for module in imported(tree) if module in FORBIDDEN_MODULES]
        found += [
            f"{name}:{node.lineno}: {ast.unparse(node.func)}()"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in FORBIDDEN_CALLS
        ]
    assert found == []
