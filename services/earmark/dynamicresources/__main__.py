"""Runs dynamicresources as a process."""

from earmark.dynamicresources.component import build
from earmark.dynamicresources.settings import Settings
from earmark.runtime.main import run

if __name__ == "__main__":
    run("dynamicresources", Settings, build)
