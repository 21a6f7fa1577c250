"""Runs the framework service as a process."""

from __future__ import annotations

from earmark.framework.component import build
from earmark.framework.settings import FrameworkSettings
from earmark.runtime.main import run

if __name__ == "__main__":
    run("framework", FrameworkSettings, build)
