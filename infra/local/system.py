"""Packages of the operating system that tests use: a browser and an OCR program.

Installed when we are root on Debian or Ubuntu; named otherwise. Parley itself runs without them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.local.console import paint, say
from infra.local.steps import Steps


@dataclass(frozen=True)
class SystemPackage:
    """A program, any of its names on PATH, Debian's packages for it and what lacks without it."""

    names: tuple[str, ...]
    debian: tuple[str, ...]
    without: str


# Chinese and Japanese are read by rapidocr, whose weights come with it.
LANGUAGES = ("eng", "deu", "fra", "spa", "ita", "por", "nld", "pol", "rus", "ukr", "ell", "ara", "heb", "hin", "kor")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WANTED = (
    SystemPackage(
        ("tesseract",),
        ("tesseract-ocr", *(f"tesseract-ocr-{language}" for language in LANGUAGES)),
        "scanned pages are read by a slower engine",
    ),
    SystemPackage(BROWSERS, ("chromium",), "browser tests use the one that Playwright brings, where it can be had"),
)


def missing() -> list[SystemPackage]:
    return [package for package in WANTED if not any(shutil.which(name) for name in package.names)]


def ensure(steps: Steps) -> None:
    """Install what is missing, or say what a person could install."""
    lacking = missing()
    if not lacking:
        return
    packages = [name for package in lacking for name in package.debian]
    if os.geteuid() == 0 and shutil.which("apt-get") and Path("/etc/debian_version").exists():
        _apt(steps, packages)
        return
    for package in lacking:
        say(paint(f"  {package.names[0]} is not installed: {package.without}.", "yellow"))
    say(f"  On Debian or Ubuntu: sudo apt install {' '.join(packages)}")


def _apt(steps: Steps, packages: Sequence[str]) -> None:
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    named = [name for name in packages if not name.startswith("tesseract-ocr-")]
    steps.run(f"system packages ({', '.join(named)})", [["apt-get", "update"], install], env=quiet)
