"""The allocator and the expression language beside Kubernetes' own, on random inputs: `make oracle-test`.

    python tests/oracle/compare.py [--lines N] [--seed S] [--part own|gen|stress|cel ...]

Needs Go and the oracle programs in ../shared/oracle; without them it says so and ends with status 0. The programs are
built once, in build/oracle. Status 1 if an answer differs; the input is printed, reduced as far as hypothesis can.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from earmark.dynamicresources import allocator
from earmark.dynamicresources.allocator.jsonlines import Question, allocate_line
from earmark.dynamicresources.allocator.judge import CelJudge

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.allocator_random import problems
from support.oracle_programs import ORACLE, ROOT, built, missing

Json = dict[str, Any]

# After that many seconds upstream gives a problem up, and so do we; such lines are counted by themselves.
_PATIENCE = 5
_PARTS = ("own", "gen", "stress", "cel")


class Different(Exception):
    """An input on which the two answers are not the same."""


@dataclass
class Count:
    """How the lines of one part came out."""

    lines: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def row(self, part: str) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.kinds.items()))
        return f"{part:8s} {self.lines:7,d} lines: {kinds} (ours: {self.seconds:.1f} s of CPU)"


class Pair:
    """Upstream's allocator as a process, and ours beside it."""

    def __init__(self, program: Path) -> None:
        command = [str(program), "-timeout", f"{_PATIENCE}s"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._judge = CelJudge()

    def compare(self, problem: Json, count: Count) -> None:
        """Answer a problem twice. Raises Different."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(problem) + "\n")
        self._process.stdin.flush()
        begun, deadline = time.process_time(), time.monotonic() + 4 * _PATIENCE
        ours = allocate_line(problem, judge=self._judge, expired=lambda: time.monotonic() > deadline)
        count.seconds += time.process_time() - begun
        if (ours["results"] is not None, ours.get("error_kind")) != self._yes_or_no(problem):
            raise Different(f"a dry run would have another answer\ninput     {json.dumps(problem)}")
        theirs = json.loads(self._process.stdout.readline())
        count.lines += 1
        if theirs.get("error_kind") == "timeout":
            count.kinds["that upstream gave up"] += 1
        elif ours["results"] != theirs.get("results") or ours.get("error_kind") != theirs.get("error_kind"):
            kept = {key: theirs.get(key) for key in ("results", "error", "error_kind")}
            text = f"input     {json.dumps(problem)}\nupstream  {json.dumps(kept)}\nours      {json.dumps(ours)}"
            raise Different(text)
        else:
            kind = "errors" if "error_kind" in ours else "do not fit" if ours["results"] is None else "fit"
            count.kinds[kind] += 1

    def _yes_or_no(self, problem: Json) -> tuple[bool, str | None]:
        """Answer as a dry run asks: whether the claims fit, and the kind of the error."""
        question = Question.read(problem)
        asked = allocator.Allocator(question.inventory, question.features, channel=question.channel, judge=self._judge)
        deadline = time.monotonic() + 4 * _PATIENCE
        (answer,) = asked.prepare(question.claims).fits_many(
            [(question.node, [question.ledger])], expired=lambda: time.monotonic() > deadline
        )
        return (answer, None) if isinstance(answer, bool) else (False, answer.kind)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def own(pair: Pair, lines: int, first: int, count: Count) -> None:
    """Problems of the project's own generator; a difference is shrunk before it is told."""

    @seed(first)
    @settings(
        max_examples=lines,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(problems())
    def same(problem: Json) -> None:
        pair.compare(problem, count)

    same()


def generated(command: Callable[[int, int], list[str]]) -> Callable[[Pair, int, int, Count], None]:
    """Problems that one of the scripts beside the oracle prints."""

    def run(pair: Pair, lines: int, first: int, count: Count) -> None:
        for problem in _printed(command(first, lines)):
            pair.compare(problem, count)

    return run


def _printed(command: list[str]) -> Iterator[Json]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        yield json.loads(line)


def cel(program: Path, lines: int, first: int) -> int:
    """Run the comparison that is among the tests of CEL; return its status."""
    seeds = [random.Random(first + number).randrange(2**31) for number in range(max(1, lines // 20_000))]
    environment = {
        **os.environ,
        "EARMARK_CEL_ORACLE": str(program),
        "EARMARK_CEL_SEEDS": ",".join(map(str, seeds)),
        "EARMARK_CEL_COUNT": str(min(lines, 20_000)),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-k", "real_engine", "tests/cel/test_random.py"]
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    print(
        f"cel      {lines:7,d} expressions of seeds {seeds}: {'all equal' if status == 0 else 'DIFFERENT'}", flush=True
    )
    return status


def main() -> int:
    """Compare, print the counts, return 1 at the first difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2000, help="how many inputs each part has (default: 2000)")
    parser.add_argument("--seed", type=int, help="of all parts (default: a new one)")
    parser.add_argument("--part", choices=_PARTS, action="append", help="only this part; can be repeated")
    options = parser.parse_args()
    reason = missing()
    if reason:
        print(f"oracle-test is skipped: {reason}")
        return 0
    first = random.randrange(2**31) if options.seed is None else options.seed
    wanted = options.part or _PARTS
    print(f"seed {first}", flush=True)
    parts = {
        "own": own,
        "gen": generated(lambda s, n: [str(ORACLE / "gen.py"), "--seed", str(s), "--count", str(n)]),
        "stress": generated(lambda s, n: [str(ORACLE / "stress.py"), str(s), str(n)]),
    }
    status = 0
    for name, part in parts.items():
        if name in wanted:
            pair, count = Pair(built("allocate")), Count()
            try:
                part(pair, options.lines, first, count)
            except Different as difference:
                print(f"{name}: different answers\n{difference}")
                status = 1
            pair.close()
            print(count.row(name), flush=True)
    if "cel" in wanted and cel(built("cel"), options.lines, first):
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
