"""The session of docs/kubectl.md: reads it, runs it with a kubectl, and compares what comes out.

Write the outputs anew with `PYTHONPATH=tests python -m support.kubectl_session KUBECTL`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from support.e2e_up import up

REPOSITORY = Path(__file__).resolve().parent.parent.parent
DOCUMENT = REPOSITORY / "docs" / "kubectl.md"
COMMAND_SECONDS = 60
# In a block of this kind lines may come in any number and order; those that are shown have to be among them.
WATCH = "console watch"

_BLOCK = re.compile(r"^```(console(?: watch)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run, or from one kubectl to the next.
_VARIABLE = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "TIME"),
    (re.compile(r"\b\d+\.\d+s\b"), "SECONDS"),
    (re.compile(r"(?<![\w.-])(\d+[smh]){1,2}(?![\w.-])"), "AGE"),
    (re.compile(r"\bone?-?gpu-[a-z0-9]{5}\b|(?<=-gpu-)[a-z0-9]{5}\b"), "SUFFIX"),
    # Two nodes are equally good.
    (re.compile(r"\bgpu-[ab]\b"), "NODE"),
    (re.compile(r" from default namespace$", re.MULTILINE), ""),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "IP"),
    (re.compile(r"(?<=resourceVersion: )\"?\d+\"?|(?<=Resource Version:)\s+\d+"), "VERSION"),
)


@dataclass(frozen=True)
class Step:
    """A command of the session, and the output that the document shows; "..." stands for lines left out."""

    command: str
    output: str
    watch: bool


def read(text: str) -> list[Step]:
    """Return the steps of a document."""
    steps = []
    for kind, block in _BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, output = _split(part)
            steps.append(Step(command, output, kind == WATCH))
    return steps


def _split(part: str) -> tuple[str, str]:
    """Split a command, which may go on after a backslash or in a here-document, from its output."""
    lines = part.split("\n")
    count = 1
    while lines[count - 1].endswith("\\"):
        count += 1
    if "<<'EOF'" in lines[0]:
        count = lines.index("EOF") + 1
    return "\n".join(lines[:count]), "\n".join(lines[count:])


def run(command: str, kubectl: Path, kubeconfig: Path, home: Path) -> str:
    """Run a command of the document; return what it prints on both streams."""
    links = home / "bin"
    links.mkdir(exist_ok=True)
    link = links / "kubectl"
    if not link.exists():
        link.symlink_to(kubectl.resolve())
    environment = {
        "PATH": f"{links}:{os.environ['PATH']}",
        "HOME": str(home),
        "KUBECONFIG": str(kubeconfig),
        "TZ": "UTC",
    }
    done = subprocess.run(
        ["bash", "-c", command], env=environment, cwd=REPOSITORY, text=True, check=False, timeout=COMMAND_SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout


def normal(text: str) -> list[str]:
    """Return the lines of an output without what may differ."""
    for pattern, name in _VARIABLE:
        text = pattern.sub(name, text)
    return [" ".join(line.split()) for line in text.strip().split("\n")]


def difference(step: Step, output: str) -> str:
    """Return how an output differs from the document's; "" if it does not."""
    want, got = normal(step.output), normal(output)
    if step.watch:
        missing = [line for line in want if line != "..." and line not in got]
        return "" if not missing else f"$ {step.command}\nmissing: {missing}\ngot:\n{output}"
    return "" if _matches(want, got) else f"$ {step.command}\nwant:\n{step.output}\ngot:\n{output}"


def _matches(want: list[str], got: list[str]) -> bool:
    if not want:
        return not got
    if want[0] == "...":
        return any(_matches(want[1:], got[index:]) for index in range(len(got) + 1))
    return bool(got) and want[0] == got[0] and _matches(want[1:], got[1:])


def differences(steps: list[Step], kubectl: Path, kubeconfig: Path, home: Path) -> Iterator[str]:
    """Run all steps and tell what differs."""
    for step in steps:
        if text := difference(step, run(step.command, kubectl, kubeconfig, home)):
            yield text


def rewrite(kubectl: Path) -> None:
    """Put the outputs of a run into the document; steps whose output has lines left out keep theirs."""
    text = DOCUMENT.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with up(folder / "state", REPOSITORY / "deploy/config/local.toml") as running:
            for step in read(text):
                output = run(step.command, kubectl, running.runtime.kubeconfig_path, folder)
                if output and not output.endswith("\n"):
                    output += "\n"
                if not step.watch and "..." in step.output.split("\n"):
                    if found := difference(step, output):
                        print(found)
                    continue
                old, new = f"$ {step.command}\n{step.output}", f"$ {step.command}\n{output}"
                if text.count(old) != 1:
                    print(f"not once in the document: {step.command}")
                text = text.replace(old, new)
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]))
