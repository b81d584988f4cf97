"""One real engine for all tests that want it: it takes a minute to start and gigabytes to run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contracts.engine_subjects import LiveSupervisor, engine_python
from tests.services import Services


@pytest.fixture(scope="session")
def live_supervisor(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSupervisor]:
    if not engine_python().exists():
        pytest.skip("the inference engine is not installed (make up installs it)")
    assert services.valkey.answers()
    supervisor = LiveSupervisor(services.environment()["REDIS_URL"], tmp_path_factory.mktemp("engine"))
    try:
        yield supervisor
    finally:
        supervisor.stop()
        assert supervisor.engine_pids() == []
