"""The whole product with the real engine, and a browser in front of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from infra.local.layout import REPOSITORY
from infra.local.system import BROWSERS
from tests.services import Services
from tests.stack import Stack

# A browser without its own errands: no GPU process, no updates, nothing looked up outside.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SHOTS = REPOSITORY / "build" / "screenshots"


@pytest.fixture(scope="session")
def product(services: Services) -> Iterator[Stack]:
    """Web, runner, worker and vLLM with the packaged model, started once."""
    assert (REPOSITORY / "frontend" / "dist" / "index.html").exists(), "Build the page first: make setup"
    with Stack(services, workers=1, engine=True, settings="tests.e2e.settings") as stack:
        yield stack


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, else the one that Playwright installed."""
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    with sync_playwright() as playwright:
        if program is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no browser: install Debian's `chromium`, or run `playwright install chromium`.")
        launched = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def context(browser: Browser, product: Stack) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=product.url(), reduced_motion="reduce")
    made.set_default_timeout(20_000)
    yield made
    made.close()


@pytest.fixture(scope="module")
def page(context: BrowserContext) -> Iterator[Page]:
    """The stranger's tab. A script error or a request that leaves the machine fails the story."""
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", lambda request: errors.append(request.url) if "127.0.0.1" not in request.url else None)
    yield tab
    outside = [error for error in errors if not error.startswith(("data:", "blob:"))]
    assert outside == []
