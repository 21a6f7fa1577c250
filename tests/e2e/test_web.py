"""The page of a running `earmark up` in a real Chromium: a preemption happens, and is seen from t0 to t4."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from earmark.kube import objects
from earmark.kube.http import HttpApi
from support.e2e_cluster import Cluster, pod
from support.e2e_up import Up, children, until, up
from support.web_browser import browsing, programs

pytestmark = pytest.mark.timeout(120)

# Long enough for a browser to see what lies between.
_CONFIG = """
[common]
feature_gates = { DRAPreemption = true }

[framework]
scheduler_names = ["default-scheduler"]

[claimcontroller]
deallocation_seconds = 4.0
"""


@pytest.fixture(scope="module")
def page_up() -> Iterator[Up]:
    """An `earmark up` for this file, whose page can be opened."""
    programs()
    with tempfile.TemporaryDirectory(prefix="earmark-page-") as folder:
        config = Path(folder) / "earmark.toml"
        config.write_text(_CONFIG, encoding="utf-8")
        with up(Path(folder) / "state", config) as made:
            until(lambda: bool(address(made)), 20, lambda: "\n".join(made.lines))
            yield made


@pytest.fixture
async def there(page_up: Up) -> AsyncIterator[Cluster]:
    """Two nodes with a device each, both in use."""
    async with HttpApi.from_kubeconfig(page_up.runtime.kubeconfig_path) as api:
        made = Cluster(api)
        await made.prepare("work")
        yield made


def address(made: Up) -> str:
    """Where `earmark up` says that the page is."""
    return next((line.split()[1] for line in made.lines if line.startswith("page ")), "")


def page_processes(made: Up) -> list[int]:
    """The processes that serve the page."""
    return [pid for pid in children(made.process.pid) if b"\0web\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]


class Page:
    """What can be read from the page."""

    def __init__(self, browser: Chrome) -> None:
        self.browser = browser

    def cells(self) -> dict[str, tuple[str, str]]:
        """Letter and text of each device."""
        script = """return [...document.querySelectorAll('#devices td')].map(
            (cell) => [cell.dataset.device, [cell.textContent, cell.getAttribute('aria-label')]])"""
        return {device: (letter, text) for device, (letter, text) in self.browser.execute_script(script)}

    def text(self, selector: str) -> str:
        """The text of what a selector finds."""
        script = "return [...document.querySelectorAll(arguments[0])].map((item) => item.textContent).join('\\n')"
        found: str = self.browser.execute_script(script, selector)
        return found

    async def until(self, holds: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
        """Poll; the event loop goes on meanwhile."""
        end = asyncio.get_running_loop().time() + seconds
        while not await asyncio.to_thread(holds):
            assert asyncio.get_running_loop().time() < end, f"{what}: not within {seconds} s; {self.cells()}"
            await asyncio.sleep(0.05)


async def versions(cluster: Cluster) -> list[tuple[Any, str]]:
    """Every object that a what-if could touch, with its version."""
    kinds: tuple[type[Any], ...] = (objects.Pod, objects.ResourceClaim, objects.ResourceSlice, objects.Node)
    return [
        (item.key, item.metadata.resource_version) for kind in kinds for item in (await cluster.api.list(kind)).items
    ]


async def test_a_preemption_is_seen_from_its_what_if_to_its_end(page_up: Up, there: Cluster) -> None:
    (device,) = await there.devices("work")
    with browsing() as browser:
        page = Page(browser)
        await asyncio.to_thread(browser.get, address(page_up))
        await page.until(lambda: page.text("#connection") == "live", "connected")
        assert "token" not in browser.current_url
        assert page.cells()[device] == ("A", page.cells()[device][1])
        assert "allocated to default/work" in page.cells()[device][1]

        # What if? Nothing changes by asking.
        before = await versions(there)
        browser.find_element("css selector", "#whatif-form button").click()
        await page.until(lambda: "It would preempt 1 pod" in page.text("#answer"), "the answer")
        assert f"default/work ({device})" in page.text("#answer")
        assert await versions(there) == before

        await there.open_window("work", "urgent")
        await page.until(lambda: page.cells()[device][0] == "R", "being reclaimed")
        assert "earmarked for default/urgent" in page.cells()[device][1]
        await page.until(lambda: "default/urgent" in page.text("#window-table tbody"), "a window")
        assert "default/work" in page.text("#window-table tbody")

        # The victim is gone, the claim is not: claim, pod and since when are named.
        await page.until(lambda: "still allocated" in page.cells()[device][1], "awaiting the claim controller")
        assert "default/work gone" in page.cells()[device][1]
        await page.until(lambda: "is still allocated, for" in page.text("#window-table .state"), "what it waits for")
        await page.until(lambda: "urgent" in page.text("#queue-table tbody"), "the queue")
        browser.find_element("css selector", "#queue-table button").click()
        await page.until(lambda: "awaits claim default/work-" in page.text("#explanation"), "the explanation")

        await there.until(lambda: there.runs("urgent"), what="urgent runs")
        await page.until(lambda: "allocated to default/urgent" in page.cells()[device][1], "allocated again")
        await page.until(lambda: "scheduled" in page.text("#window-table .state"), "the window's end")
        bars = browser.execute_script(
            "return [...document.querySelectorAll('#window-table rect')].map((r) => r.classList[0])"
        )
        assert bars[:2] == ["terminating", "deallocating"]
        assert [entry["message"] for entry in browser.get_log("browser")] == []  # type: ignore[no-untyped-call]


async def test_the_map_is_walked_by_keyboard_and_has_one_tab_stop(page_up: Up, there: Cluster) -> None:
    with browsing() as browser:
        page = Page(browser)
        await asyncio.to_thread(browser.get, address(page_up))
        await page.until(lambda: len(page.cells()) == 2, "the map")
        body = browser.find_element("css selector", "body")
        body.send_keys(Keys.TAB)
        assert browser.switch_to.active_element.text == "Skip to the content"
        assert browser.execute_script("return document.querySelectorAll('#devices [tabindex=\"0\"]').length") == 1
        browser.execute_script("document.querySelector('#devices [tabindex=\"0\"]').focus()")
        browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
        assert page.text("#detail").startswith("b, gpu.example.com/b/gpu-0: allocated to default/bystander")
        browser.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
        assert page.text("#detail").startswith("b, ")


async def test_the_filter_leaves_the_nodes_that_are_asked_for(page_up: Up, there: Cluster) -> None:
    with browsing() as browser:
        page = Page(browser)
        await asyncio.to_thread(browser.get, address(page_up))
        await page.until(lambda: len(page.cells()) == 2, "the map")
        browser.find_element("css selector", "#filter").send_keys("bystander")
        script = "return [...document.querySelectorAll('#devices tbody tr')].filter((r) => r.offsetHeight).length"
        assert browser.execute_script(script) == 1


@pytest.mark.parametrize("width", [1280, 400])
async def test_nothing_is_wider_than_the_window(page_up: Up, there: Cluster, width: int) -> None:
    with browsing(width) as browser:
        page = Page(browser)
        await asyncio.to_thread(browser.get, address(page_up))
        await page.until(lambda: len(page.cells()) == 2, "the map")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


async def test_a_second_pod_of_the_same_kind_can_be_asked_about_by_name(page_up: Up, there: Cluster) -> None:
    await there.put(pod("waiting", "batch"))
    with browsing() as browser:
        page = Page(browser)
        await asyncio.to_thread(browser.get, address(page_up))
        browser.find_element("css selector", "#explain-form input[name=name]").send_keys("waiting", Keys.ENTER)
        await page.until(lambda: "default/waiting" in page.text("#explanation"), "the explanation")
    await there.delete("waiting")


# The last one: the page is gone afterwards.
async def test_a_page_that_lost_its_server_says_so(page_up: Up, there: Cluster) -> None:
    with browsing() as browser:
        page = Page(browser)
        await asyncio.to_thread(browser.get, address(page_up))
        await page.until(lambda: page.text("#connection") == "live", "connected")
        pids = page_processes(page_up)
        assert len(pids) == 1
        os.kill(pids[0], signal.SIGTERM)
        await page.until(lambda: "connection lost" in page.text("#connection"), "a word about it")
        assert page.cells(), "what was known stays"
    until(lambda: any("page: ended with status 0" in line for line in page_up.lines), 10)
