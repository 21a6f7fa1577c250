"""How fast selectors are compiled and evaluated, and that evaluating takes no memory; the Go engine beside it.

Usage: bench_cel.py [--oracle PATH] [--evaluations N] [--json FILE]. Times are CPU time; the table goes to the terminal.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from earmark.cel.devices import environment
from earmark.dynamicresources.devicecel import Selector, compile_selector, prepare_device
from earmark.kube.objects import Device
from support.cel_devices import prepared
from support.cel_random import DEVICE

_A = 'device.attributes["gpu.example.com"]'
_C = 'device.capacity["gpu.example.com"]'
SELECTORS = {
    "plain": f'device.driver == "gpu.example.com" && {_A}.model == "A100-SXM4-80GB"',
    "plain, four parts": f'device.driver == "gpu.example.com" && {_A}.index >= 0 && {_A}.index < 8 && !{_A}.mig',
    "quantity": f'{_C}.memory.isGreaterThan(quantity("40Gi"))',
    "semver": f'{_A}.driverVersion.isGreaterThan(semver("550.0.0"))',
    "quantity and semver": f'{_C}.memory.compareTo(quantity("40Gi")) >= 0 && {_A}.driverVersion.isLessThan(semver("600.0.0"))',
    "list and regex": f'{_A}.model in ["A100-SXM4-80GB", "H100"] && {_A}.model.matches("^A100")',
    "fold": 'device.attributes["list.example.com"].ints.exists(i, i == 5)',
}


@dataclass(frozen=True)
class Row:
    """One measurement, in microseconds unless the name says otherwise."""

    name: str
    value: float
    limit: float | None
    go: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", help="the built Go program to measure beside")
    parser.add_argument("--evaluations", type=int, default=1_000_000, help="for the test of memory")
    parser.add_argument("--json", help="write the results to this file")
    options = parser.parse_args()
    rows = measure(options.oracle, options.evaluations)
    for row in rows:
        limit = "" if row.limit is None else f"(limit {row.limit:g})"
        beside = "" if row.go is None else f"Go {row.go:.1f}"
        print(f"{row.name:36} {row.value:12.2f} {limit:16} {beside}")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


def measure(oracle: str | None, evaluations: int) -> list[Row]:
    """All measurements."""
    device = prepared(DEVICE)
    rows: list[Row] = []
    for name, text in SELECTORS.items():
        selector = compile_selector(text)
        go = None if oracle is None else _go(oracle, text)
        limit = 10.0 if name.startswith("plain") else 50.0
        rows.append(Row(f"evaluate {name}", _micros(lambda one=selector: one.matches(device), 20_000), limit, go))
    for name, text in SELECTORS.items():
        rows.append(Row(f"compile {name}", _micros(lambda one=text: environment().compile(one), 200), 1_000.0))
    described = msgspec.convert({"name": "d", **{k: v for k, v in DEVICE.items() if k != "driver"}}, Device)
    rows.append(Row("prepare a device", _micros(lambda: prepare_device("gpu.example.com", described), 2_000), 200.0))
    rows.append(Row("40,000 devices x 3 selectors (s)", _fleet(described), 5.0))
    rows.append(Row(f"memory of {evaluations:,} evaluations (MiB)", _growth(device, evaluations), 1.0))
    return rows


def _micros(work: Callable[[], Any], count: int) -> float:
    """The best of three series, per call."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        for _ in range(count // 3):
            work()
        best = min(best, (time.process_time() - started) / (count // 3))
    return best * 1e6


def _fleet(described: Device) -> float:
    selectors = [compile_selector(SELECTORS[name]) for name in ("plain", "quantity", "semver")]
    started = time.process_time()
    for _ in range(40_000):
        device = prepare_device("gpu.example.com", described)
        for selector in selectors:
            selector.matches(device)
    return time.process_time() - started


def _growth(device: Any, evaluations: int) -> float:
    selectors: list[Selector] = [compile_selector(text) for text in SELECTORS.values()]
    for selector in selectors:
        selector.matches(device)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(evaluations // len(selectors)):
        for selector in selectors:
            selector.matches(device)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def _go(oracle: str, expression: str) -> float:
    line = json.dumps({"expression": expression, "device": DEVICE, "repeat": 2_000})
    found = subprocess.run([oracle], input=line, capture_output=True, text=True, check=True).stdout
    return float(json.loads(found)["eval_nanos"]) / 1e3


if __name__ == "__main__":
    main()
