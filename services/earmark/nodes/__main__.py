"""Runs the emulated nodes as a process."""

from __future__ import annotations

from earmark.nodes.component import build
from earmark.nodes.settings import NodesSettings
from earmark.runtime.main import run

if __name__ == "__main__":
    run("nodes", NodesSettings, build)
