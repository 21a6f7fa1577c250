"""How long the allocator takes, and upstream beside it in the same run where its oracle programs are built.

    python tests/bench/bench_allocator.py [--json FILE] [--docs] [--nodes 5000] [--quick] [SECTION ...]

Times are CPU time of one thread; garbage is collected as in a service's process. Upstream's programs are built from
../shared/oracle where that and Go are there. `--docs` writes the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from earmark.dynamicresources.allocator import Allocator
from earmark.dynamicresources.allocator.jsonlines import Question
from earmark.dynamicresources.allocator.judge import CelJudge
from earmark.dynamicresources.cycles import open_cycle
from earmark.dynamicresources.filtering import NodeCheck, run_filter
from earmark.dynamicresources.ledger import Ledger
from earmark.dynamicresources.settings import Settings
from earmark.dynamicresources.solving import Solver, allocator_features
from earmark.kube.objects import AllocationResult, ResourceClaim
from earmark.runtime import memory as collecting

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.allocator_fleet import GPUS, Fleet, holding, occupied, wanting
from support.oracle_programs import ROOT, built, missing

COLUMNS = ("what", "ours_ms", "upstream_ms", "ratio", "mib")
SHARED = ROOT.parent / "shared" / "conformance" / "allocator"


@dataclass
class Report:
    """Rows of the table; also written as JSON."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, what: str, ours_ms: float, upstream_ms: float | None = None, **more: Any) -> None:
        row = {"what": what, "ours_ms": round(ours_ms, 2)}
        if upstream_ms is not None:
            row |= {"upstream_ms": round(upstream_ms, 2), "ratio": round(ours_ms / upstream_ms, 3)}
        self.rows.append(row | more)
        print(self.line(self.rows[-1]), flush=True)

    @staticmethod
    def line(row: dict[str, Any]) -> str:
        rest = ", ".join(f"{k} {v}" for k, v in row.items() if k not in COLUMNS)
        upstream = f"{row['upstream_ms']:12.1f} {row['ratio']:7.3f}" if "ratio" in row else " " * 20
        return f"{row['what']:46s} {row['ours_ms']:12.1f} {upstream}  {rest}"


def cpu_ms(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    result = work()
    return (time.process_time() - begun) * 1000, result


def never() -> bool:
    return False


def resident_mib() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


# --- recorded problems -----------------------------------------------------------------------------------------------


def lines(name: str) -> list[dict[str, Any]]:
    with (SHARED / f"{name}.jsonl").open() as recorded:
        return [json.loads(line)["input"] for line in recorded]


def answer(question: Question, judge: CelJudge) -> Any:
    """Answer a decoded line; errors are answers."""
    allocator = Allocator(question.inventory, question.features, channel=question.channel, judge=judge)
    problem = allocator.prepare(question.claims)
    outcome = problem.allocate_many([(question.node, [question.ledger])], expired=never)[0]
    return outcome.error or outcome.results(lambda: "share")


def pathological(report: Report, options: argparse.Namespace) -> None:
    """Every line by itself, compilation of selectors included."""
    for line in lines("pathological"):
        question = Question.read(line)
        taken, result = cpu_ms(lambda question=question: answer(question, CelJudge()))
        upstream = oracle_ms(options, [line], "-timeout", "20s") if options.oracle and not options.quick else None
        report.add(f"pathological: {line['id']}", taken, upstream, fits=bool(result))


def recorded(report: Report, options: argparse.Namespace) -> None:
    """All of random.jsonl, the second pass with warm selectors, decoding aside."""
    inputs = lines("random")
    judge = CelJudge()
    taken = 0.0
    for _ in range(2):
        questions = [Question.read(line) for line in inputs]
        collecting.settle()
        taken, _ = cpu_ms(lambda questions=questions: [answer(question, judge) for question in questions])
        gc.unfreeze()
    upstream = None
    if options.oracle:
        both = oracle_nanos(options, inputs + inputs, "-warm")
        upstream = sum(both[len(inputs) :]) / 1e6
    report.add("random.jsonl, 1,500 lines, warm", taken, upstream)


def oracle_nanos(options: argparse.Namespace, inputs: Sequence[dict[str, Any]], *flags: str) -> list[int]:
    text = "\n".join(json.dumps(line) for line in inputs)
    output, share = run_upstream([options.oracle, *flags], text)
    return [round(json.loads(line)["nanos"] * share) for line in output.splitlines()]


def oracle_ms(options: argparse.Namespace, inputs: Sequence[dict[str, Any]], *flags: str) -> float:
    return sum(oracle_nanos(options, inputs, *flags)) / 1e6


# --- a fleet ---------------------------------------------------------------------------------------------------------


def filtering(report: Report, options: argparse.Namespace) -> None:
    """One pod against every node, then the next pod of the same shape."""
    upstream = fleet_ms(options, "-job", "filter", "-nodes", str(options.nodes))
    patterns = random.Random(7)
    fills = [sum(1 << k for k in patterns.sample(range(GPUS), 4)) for _ in range(200)]
    for name, keep in (
        ("half in use", lambda number, k: k % 2 == 0),
        ("200 fill patterns", lambda number, k: bool(fills[number % 200] >> k & 1)),
    ):
        fleet = Fleet(options.nodes)
        ledger = fleet.charged(keep)
        allocator = Allocator(fleet.inventory)
        queries = [(node, [ledger]) for node in fleet.nodes]
        collecting.settle()
        for turn in ("first pod", "next pod"):
            taken, outcomes = cpu_ms(
                lambda allocator=allocator, queries=queries: allocator.prepare([wanting(4)]).allocate_many(
                    queries, expired=never
                )
            )
            fits = sum(outcome.fits for outcome in outcomes)
            report.add(f"filter, {name}: {turn}", taken, upstream if turn == "first pod" else None, fits=fits)
        gc.unfreeze()


def dry_run(report: Report, options: argparse.Namespace) -> None:
    """Full nodes of 8 victims: remove all, then one reprieve after the other, on all nodes in step."""
    upstream = fleet_ms(options, "-job", "dryrun", "-nodes", str(options.nodes), "-candidates", "500")
    fleet = Fleet(options.nodes)
    ledger = fleet.charged(lambda number, k: True)
    allocator, held = Allocator(fleet.inventory), victims_of(fleet)
    collecting.settle()
    taken, (asked, victims) = cpu_ms(lambda: preempt(allocator, fleet, ledger, held, wanting(4)))
    gc.unfreeze()
    note = "upstream: 500 candidates"
    report.add("dry run, 8 victims a node", taken, upstream, questions=asked, victims=victims, note=note)


def plugin(report: Report, options: argparse.Namespace) -> None:
    """The same dry run through the plugin: FilterForks on pods and claims, all nodes a round."""
    fleet = Fleet(options.nodes)
    world, pod = occupied(fleet)
    settings = Settings(feature_gates={"DRAPreemption": True})
    solver = Solver(allocator_features(settings.gate), lambda: "share", lambda: never)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    collecting.settle()
    cycle = open_cycle("cycle", world, pod, settings, solver)
    taken, verdicts = cpu_ms(
        lambda: run_filter(cycle, [NodeCheck(node.name) for node in fleet.nodes], settings, solver, now, keep=True)
    )
    report.add("plugin: Filter, all nodes full", taken, fits=sum(one.status.success for one in verdicts))

    def fits(removed: dict[str, list[int]]) -> list[bool]:
        checks = [NodeCheck(node, tuple(f"pod-{node}/{k}" for k in gone)) for node, gone in removed.items()]
        return [one.status.success for one in run_filter(cycle, checks, settings, solver, now, keep=False)]

    taken, (asked, victims) = cpu_ms(lambda: reprieved(fits, {node.name: list(range(GPUS)) for node in fleet.nodes}))
    report.add("plugin: FilterForks, dry run of all nodes", taken, questions=asked, victims=victims)
    gc.unfreeze()


def reprieved(fits: Callable[[dict[str, list[int]]], list[bool]], removed: dict[str, list[int]]) -> tuple[int, int]:
    """Remove all, then spare one after the other; return the number of questions and of victims."""
    asked = len(removed)
    removed = {node: gone for (node, gone), fit in zip(removed.items(), fits(removed), strict=True) if fit}
    for k in range(GPUS):
        tried = {node: [other for other in gone if other != k] for node, gone in removed.items()}
        asked += len(tried)
        for (node, gone), fit in zip(tried.items(), fits(tried), strict=True):
            if fit:
                removed[node] = gone
    return asked, sum(map(len, removed.values()))


def memory(report: Report, options: argparse.Namespace) -> None:
    """What a full fleet with its caches takes, in a process of its own."""
    if not options.alone:
        command = [sys.executable, __file__, "memory", "--alone", "--nodes", str(options.nodes)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        mib = float(done.stdout.splitlines()[-1])
        report.rows.append({"what": "memory: slices, ledger and caches", "mib": mib})
        print(f"{'memory: slices, ledger and caches':46s} {mib:12.1f} MiB")
        return
    base = resident_mib()
    fleet = Fleet(options.nodes)
    ledger = fleet.charged(lambda number, k: True)
    preempt(Allocator(fleet.inventory), fleet, ledger, victims_of(fleet), wanting(4))
    gc.collect()
    print(round(resident_mib() - base, 1))


def differing(report: Report, options: argparse.Namespace) -> None:
    """The hard case: 3 requests, 2 counters, every device of every node different."""
    fleet = Fleet(options.nodes, differ=True)
    ledger = fleet.charged(lambda number, k: True)
    allocator, held = Allocator(fleet.inventory), victims_of(fleet)
    collecting.settle()
    taken, (asked, victims) = cpu_ms(lambda: preempt(allocator, fleet, ledger, held, wanting(2, 1, 1)))
    gc.unfreeze()
    report.add("dry run, all devices differ in 2 counters", taken, questions=asked, victims=victims)


Victims = list[list[tuple[str, AllocationResult]]]
"""Per node the claims of its victims and what they hold, in the order of the reprieve."""


def victims_of(fleet: Fleet) -> Victims:
    """Every device of every node is held by a claim of its own."""
    return [[(f"{node.name}/{k}", holding(node.name, k)) for k in range(GPUS)] for node in fleet.nodes]


def preempt(
    allocator: Allocator, fleet: Fleet, ledger: Ledger, victims: Victims, claim: ResourceClaim
) -> tuple[int, int]:
    """Return the number of questions and of victims."""
    problem = allocator.prepare([claim])
    forks = [ledger.release_all([uid for uid, _ in held]) for held in victims]
    answers = problem.fits_many([(node, [fork]) for node, fork in zip(fleet.nodes, forks, strict=True)], expired=never)
    asked, gone = len(forks), 0
    candidates = [number for number, fits in enumerate(answers) if fits is True]
    for k in range(GPUS):
        tried = [forks[number].charge(*victims[number][k]) for number in candidates]
        answers = problem.fits_many(
            [(fleet.nodes[number], [fork]) for number, fork in zip(candidates, tried, strict=True)], expired=never
        )
        asked += len(tried)
        for number, fork, fits in zip(candidates, tried, answers, strict=True):
            if fits is True:
                forks[number] = fork
            else:
                gone += 1
    return asked, gone


def fleet_ms(options: argparse.Namespace, *flags: str) -> float | None:
    """Upstream's time for a job, as CPU time: its clock, less what others had of the processor meanwhile."""
    if not options.fleet:
        return None
    done, share = run_upstream([options.fleet, *flags, "-workers", "1"])
    return float(json.loads(done)["seconds"]) * 1000 * share


def run_upstream(command: list[str], text: str = "") -> tuple[str, float]:
    """Return the output, and which part of the elapsed time the program was running."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True,
                          env={**os.environ, "GOMAXPROCS": "1"})  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return done.stdout, min(1.0, used / (time.perf_counter() - begun))


SECTIONS = {
    "pathological": pathological,
    "random": recorded,
    "filter": filtering,
    "dryrun": dry_run,
    "plugin": plugin,
    "memory": memory,
    "differ": differing,
}


DOCS = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- allocator: written by make bench-allocator ARGS=--docs -->", "<!-- end of allocator -->"


def write_section(report: Report, nodes: int) -> None:
    """Replace the allocator's table in docs/performance.md."""
    version = ".".join(map(str, sys.version_info[:3]))
    rows = [
        f"CPU milliseconds of one thread; {nodes:,} nodes; CPython {version}, {os.cpu_count()} cores, "
        f"{platform.machine()}. Ratio: ours to upstream's, both in this run.",
        "",
        "| what | earmark | upstream | ratio | |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for row in report.rows:
        ours = f"{row['mib']} MiB" if "mib" in row else f"{row['ours_ms']:,.1f}"
        upstream, ratio = (f"{row['upstream_ms']:,.1f}", f"{row['ratio']:.3f}") if "ratio" in row else ("", "")
        rest = ", ".join(f"{k} {v:,}" if type(v) is int else f"{k} {v}" for k, v in row.items() if k not in COLUMNS)
        rows.append(f"| {row['what']} | {ours} | {upstream} | {ratio} | {rest} |")
    text = DOCS.read_text() if DOCS.exists() else f"# Performance\n\n## Allocator\n\n{BEGIN}\n{END}\n"
    head, _, rest = text.partition(BEGIN)
    _, found, tail = rest.partition(END)
    if not found:
        raise SystemExit(f"{DOCS}: the section of the allocator is not marked")
    DOCS.write_text("\n".join([head + BEGIN, "", *rows, "", END + tail]))


def main() -> int:
    """Run the sections and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], help="default: all")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--alone-ours", action="store_true", help="do not measure upstream")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="leave out upstream's long searches")
    options = parser.parse_args()
    options.oracle = options.fleet = None
    reason = "not asked for" if options.alone_ours or options.alone else missing()
    if reason:
        print(f"upstream is not measured: {reason}", file=sys.stderr)
    else:
        options.oracle, options.fleet = str(built("allocate")), str(built("fleet"))
    collecting.begin()
    report = Report()
    print(f"{'':46s} {'ours, ms':>12s} {'upstream':>12s} {'ratio':>7s}")
    for name in options.sections or SECTIONS:
        if name in ("pathological", "random") and not SHARED.exists():
            print(f"{name}: the recordings are not beside the project", file=sys.stderr)
            continue
        gc.collect()
        SECTIONS[name](report, options)
    if options.docs:
        write_section(report, options.nodes)
    if options.json:
        options.json.write_text(json.dumps({"nodes": options.nodes, "rows": report.rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
