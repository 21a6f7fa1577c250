"""Runs the claim controller as a process."""

from __future__ import annotations

from earmark.claimcontroller.component import build
from earmark.claimcontroller.settings import ClaimControllerSettings
from earmark.runtime.main import run

if __name__ == "__main__":
    run("claimcontroller", ClaimControllerSettings, build)
