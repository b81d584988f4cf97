"""The licence that the project names is the one that comes with it."""

from __future__ import annotations

import hashlib
import tomllib

from infra.local.layout import REPOSITORY

APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""The SHA-256 of https://www.apache.org/licenses/LICENSE-2.0.txt."""


def test_the_licence_is_there_in_its_own_words() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert hashlib.sha256((REPOSITORY / "LICENSE").read_bytes()).hexdigest() == APACHE_2_0
