"""`earmark demo`: real processes on the embedded API, one preemption for a GPU, and its settling window."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earmark.cli.apply import read_manifests
from earmark.cli.errors import BadInput, CommandError
from earmark.cli.output import Terminal
from earmark.cli.running import open_api, run
from earmark.cli.settings import runtime_settings
from earmark.cli.story import INCIDENT, SERVING, TRAINING, Moment, Story
from earmark.cli.up import startup_error
from earmark.client import EarmarkClient
from earmark.kube import objects
from earmark.kube.apply import apply
from earmark.kube.informer import Informer
from earmark.kube.manifests import ManifestError
from earmark.runtime.clock import SystemClock
from earmark.runtime.process import SERVICES, RuntimeSettings
from earmark.runtime.supervisor import Notice, Supervisor, SupervisorError
from earmark.runtime.tasks import ComponentTasks

if TYPE_CHECKING:
    from earmark.kube.http import HttpApi

# What each step may take, in seconds.
_STEP_SECONDS = 30.0

_STAGE_STYLES = {"t0": "bold red", "t1": "bold yellow", "t3": "bold cyan", "t4": "bold green"}


def demo(config: Path | None, manifests: Path | None, as_json: bool) -> int:
    """Play the demo in a temporary state folder; return 0 if everything held, else 1.

    Raises BadInput for manifests or settings that cannot be used, CommandError where the services do not start or a
    step does not happen in time.
    """
    folder = manifests or _examples()
    for name in ("cluster", "running.yaml", "urgent.yaml", "latecomer.yaml"):
        if not (folder / name).exists():
            raise BadInput(f"{folder / name}: missing; --manifests wants a folder like examples/gpu-cluster")
    state = Path(tempfile.mkdtemp(prefix="earmark-demo-"))
    runtime = replace(runtime_settings(config, None), state_dir=str(state), addresses={}, kubeconfig="")
    logs_are_wanted = False
    try:
        return run(_Demo(runtime, config, folder, as_json).play())
    except ManifestError as error:
        raise BadInput(str(error)) from error
    except CommandError as error:
        logs_are_wanted = True
        raise type(error)(f"{error}; logs are kept in {runtime.log_dir}") from error
    finally:
        if not logs_are_wanted:
            shutil.rmtree(state, ignore_errors=True)


def _examples() -> Path:
    """Return the examples of a source checkout, from wherever the command is called."""
    return Path(__file__).resolve().parents[3] / "examples" / "gpu-cluster"


class _Demo:
    """One run."""

    def __init__(self, runtime: RuntimeSettings, config: Path | None, folder: Path, as_json: bool) -> None:
        self._runtime = runtime
        self._config = config
        self._folder = folder
        self._as_json = as_json
        self._console = Terminal(quiet=as_json)
        self._changed = asyncio.Event()

    async def play(self) -> int:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        self._console.print(f"Starting {', '.join(SERVICES)} ...", soft_wrap=True)
        try:
            async with Supervisor(self._runtime, self._config, self._notice) as supervisor:
                up = loop.time()
                self._console.print(f"All services are ready after {up - begun:.1f} s.\n")
                story = Story(lambda: loop.time() - up, self._moment)
                async with (
                    open_api(self._runtime) as api,
                    self._follow(api, story),
                    EarmarkClient(self._runtime) as client,
                ):
                    await self._act(api, client, story)
                memory = {name: _rss_mib(pid) for name, pid in supervisor.processes().items()}
        except SupervisorError as error:
            raise startup_error(error) from error
        return self._report(story, memory, up - begun)

    async def _act(self, api: HttpApi, client: EarmarkClient, story: Story) -> None:
        self._title("Two nodes with one GPU each; both GPUs are in use")
        await self._apply(api, "cluster")
        await self._apply(api, "running.yaml")
        await self._until("two pods running", lambda: story.runs(TRAINING) and story.runs(SERVING))
        self._title("A pod arrives that needs a GPU now, and outranks both")
        await self._apply(api, "urgent.yaml")
        await self._until(f"{TRAINING} preempted", lambda: bool(story.victims))
        self._title("The settling window: the GPU is being freed, and is spoken for")
        story.held = await self._held(client)
        story.say(f"{', '.join(story.held) or 'nothing'} is held for {INCIDENT}")
        await self._until(f"{TRAINING} gone", lambda: story.at("t1") is not None)
        # After t1, before t3: a scheduler without memory would give the device to whoever asks at t3.
        await self._apply(api, "latecomer.yaml")
        await self._until(f"{INCIDENT} running", lambda: story.runs(INCIDENT))
        # Whoever would take something away does so at once.
        await asyncio.sleep(0.5)

    async def _held(self, client: EarmarkClient) -> list[str]:
        for settlement in await client.settlements():
            if settlement.preemptor.name == INCIDENT:
                return list(settlement.devices)
        return []

    async def _apply(self, api: HttpApi, name: str) -> None:
        for manifest in read_manifests([self._folder / name]):
            await apply(api, manifest)

    @contextlib.asynccontextmanager
    async def _follow(self, api: HttpApi, story: Story) -> AsyncIterator[None]:
        tasks = ComponentTasks("demo")
        clock = SystemClock()
        claims = Informer(api, objects.ResourceClaim, clock)
        pods = Informer(api, objects.Pod, clock)
        claims.add_handler(lambda event: self._change(story.claim_changed, event.old, event.new))
        pods.add_handler(lambda event: self._change(story.pod_changed, event.old, event.new))
        claims.start(tasks)
        pods.start(tasks)
        try:
            yield
        finally:
            await tasks.cancel_all()

    def _change(self, take: Callable[[Any, Any], None], old: Any, new: Any) -> None:
        take(old, new)
        self._changed.set()

    async def _until(self, what: str, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(_STEP_SECONDS):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise CommandError(f"demo: waited {_STEP_SECONDS:g} s for: {what}") from None

    def _notice(self, notice: Notice) -> None:
        self._console.print(f"[yellow]{notice.service}[/]: {notice.text}")

    def _title(self, text: str) -> None:
        self._console.print(f"\n[bold]{text}[/]")

    def _moment(self, moment: Moment) -> None:
        style = _STAGE_STYLES.get(moment.stage, "dim")
        line = f"  {moment.at:6.2f} s  [{style}]{moment.stage or '·':<2}[/]  {moment.text}"
        self._console.print(line, soft_wrap=True)

    def _report(self, story: Story, memory: dict[str, float], startup: float) -> int:
        failures = story.failures()
        if self._as_json:
            stages = {stage: story.at(stage) for stage in ("t0", "t1", "t3", "t4")}
            report = {
                "ok": not failures,
                "failures": failures,
                "startup_seconds": round(startup, 3),
                "timeline": [asdict(moment) for moment in story.moments],
                "settling": {**stages, "held": story.held, "got": story.devices(INCIDENT), "victims": story.victims},
                "memory_mib": memory,
            }
            print(json.dumps(report))
            return 1 if failures else 0
        self._picture(story)
        for failure in failures:
            self._console.print(f"[bold red]failed[/]  {failure}")
        if not failures:
            text = f"[bold green]ok[/]  {INCIDENT} got exactly the device that was held for it: {', '.join(story.held)}"
            self._console.print(text, soft_wrap=True)
        used = ", ".join(f"{name} {mib:.0f}" for name, mib in memory.items())
        self._console.print(f"[dim]memory in MiB: {used}[/]", soft_wrap=True)
        return 1 if failures else 0

    def _picture(self, story: Story) -> None:
        t0, t1, t3, t4 = (story.at(stage) for stage in ("t0", "t1", "t3", "t4"))
        if t0 is None or t1 is None or t3 is None or t4 is None:
            return
        self._console.print("\n[bold]The settling window[/]")
        phases = (
            ("victim terminates", "t0", t0, t1),
            ("claim is deallocated", "t1", t1, t3),
            ("device is held", "t3", t3, t4),
        )
        width = 48
        scale = width / max(t4 - t0, 0.001)
        for text, stage, start, end in phases:
            offset = min(width - 1, round((start - t0) * scale))
            length = max(1, min(width - offset, round((end - start) * scale)))
            bar = " " * offset + "█" * length + " " * (width - offset - length)
            self._console.print(f"  {text:<21}[{_STAGE_STYLES[stage]}]{bar}[/] {end - start:6.2f} s")
        self._console.print()


def _rss_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)
