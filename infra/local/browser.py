"""A browser for the tests where the system has none: the one that Playwright brings."""

from __future__ import annotations

import shutil

from infra.local.console import paint, say
from infra.local.layout import Layout
from infra.local.steps import StepFailed, Steps
from infra.local.system import BROWSERS


def ensure(layout: Layout, steps: Steps) -> None:
    """Fetch it, unless the system has one. Where it cannot be had, the browser tests are skipped and say so."""
    if any(shutil.which(name) for name in BROWSERS):
        return
    try:
        steps.run("browser, for tests", [[layout.python, "-m", "playwright", "install", "chromium"]])
    except StepFailed as failure:
        say(paint(f"  Browser tests are skipped: {failure}", "yellow"))
