"""A real browser, headless, for tests of the page."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def programs() -> tuple[str, str]:
    """Chromium and its driver; the test is skipped where one is missing."""
    browser = os.environ.get("EARMARK_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    driver = os.environ.get("EARMARK_CHROMEDRIVER") or shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("chromium and chromedriver are not installed (Debian: apt-get install chromium chromium-driver)")
    return browser, driver


@contextlib.contextmanager
def browsing(width: int = 1280, height: int = 900, scheme: str = "light") -> Iterator[Chrome]:
    """A browser with a profile of its own; `scheme` is what prefers-color-scheme says."""
    browser, driver = programs()
    with tempfile.TemporaryDirectory(prefix="earmark-chromium-", ignore_cleanup_errors=True) as profile:
        options = Options()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        page = Chrome(options=options, service=Service(driver))
        try:
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            yield page
        finally:
            page.quit()
