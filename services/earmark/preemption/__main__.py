"""Runs the preemption service as a process."""

from __future__ import annotations

from earmark.preemption.component import build
from earmark.preemption.settings import PreemptionSettings
from earmark.runtime.main import run

if __name__ == "__main__":
    run("preemption", PreemptionSettings, build)
