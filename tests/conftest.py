"""Fixtures for every test. Sets the environment before Django reads it; servers start when first needed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests import services as session_services
from tests.services import Services

os.environ.update(session_services.session().environment())


def pytest_configure() -> None:
    import django

    django.setup()


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    """The session's servers, for tests that need their addresses."""
    yield from session_services.use()


@pytest.fixture(autouse=True)
def _empty_valkey(services: Services) -> None:
    """Each test starts with an empty Valkey, as it starts with an empty database."""
    services.valkey.call("FLUSHALL")


@pytest.fixture(scope="session")
def django_db_setup(services: Services, django_test_environment: None, django_db_blocker: object) -> Iterator[None]:
    """Replaces pytest-django's own: the database is a copy of a migrated template."""
    from django.db import connection

    assert services.postgres.answers(connection.settings_dict["NAME"])
    yield
    connection.close()
    close_pool = getattr(connection, "close_pool", None)
    if close_pool is not None:
        close_pool()


@pytest.fixture(scope="session")
def s3(services: Services) -> dict[str, str]:
    """A real S3 server's environment (S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY, S3_SECRET_KEY, S3_REGION)."""
    return services.seaweed.environment()
