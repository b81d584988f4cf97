"""Versions of the programs that Parley runs on or makes use of."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from apps.core.checkup.types import Finding, ok, warn

# Name, programs that will do, and what lacks without it.
OPTIONAL = (
    ("node", ("node",), "the front end cannot be built", "Install Node.js 20.19 or newer."),
    ("tesseract", ("tesseract",), "scans are read by a slower engine", "apt install tesseract-ocr"),
    ("chromium", ("chromium", "chromium-browser", "google-chrome"), "browser tests cannot run", "apt install chromium"),
)


def check() -> list[Finding]:
    python = ".".join(map(str, sys.version_info[:3]))
    findings = [ok("python", python)]
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        findings = [warn("python", python, "Parley is tested with 3.11 to 3.13.")]
    for name, programs, without, advice in OPTIONAL:
        path = next(filter(None, map(shutil.which, programs)), None)
        findings.append(ok(name, version_of(path)) if path else warn(name, f"not installed: {without}", advice))
    return findings


def version_of(path: str) -> str:
    """The first version number that a program says of itself."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path} does not run: {error}"
    number = re.search(r"\d+(\.\d+)+", said.stdout + said.stderr)
    return number.group() if number else "unknown version"
