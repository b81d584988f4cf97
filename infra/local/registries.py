"""Lets uv use the same mirrors, find-links and certificates as the machine's pip.

A machine behind a company mirror, or one with wheels on disk, is set up through pip's own configuration;
uv does not read it, so its values are handed over when uv has none of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

# pip's option, the variables uv reads for it.
HANDED_OVER = (("find-links", "UV_FIND_LINKS"), ("index-url", "UV_DEFAULT_INDEX"), ("cert", "SSL_CERT_FILE"))


def pip_setting(option: str) -> str:
    """A value of pip's environment or configuration files, or an empty string."""
    from_environment = os.environ.get("PIP_" + option.upper().replace("-", "_"), "")
    if from_environment:
        return from_environment
    for section in ("install", "global"):
        asked = subprocess.run(
            [sys.executable, "-m", "pip", "config", "get", f"{section}.{option}"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0 and asked.stdout.strip():
            return asked.stdout.strip()
    return ""


def uv_environment() -> dict[str, str]:
    """Variables to add for uv. uv splits find-links at commas where pip splits at white space."""
    added = {"UV_PYTHON_PREFERENCE": "system", "UV_NO_PROGRESS": "1"}
    for option, variable in HANDED_OVER:
        value = "" if os.environ.get(variable) else pip_setting(option)
        if value:
            added[variable] = ",".join(value.split()) if option == "find-links" else value
    return added
