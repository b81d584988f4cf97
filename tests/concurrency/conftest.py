"""One stack of two webs and two runners for the tests of this folder that need real processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client import Api
from tests.services import Services
from tests.stack import Stack


@pytest.fixture(scope="package")
def stack(services: Services) -> Iterator[Stack]:
    with Stack(services, webs=2, runners=2, slots=4096, settings="tests.live_settings") as running:
        yield running


@pytest.fixture(scope="package")
def webs(stack: Stack) -> tuple[Api, Api]:
    key = stack.api_key()
    return Api(stack.url(1), key, timeout=60), Api(stack.url(2), key, timeout=60)
