"""Fixtures for every test. Sets the environment before Django reads it; servers start when first needed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

from infra.local.layout import REPOSITORY
from tests import services as session_services
from tests.services import Services
from tests.stack import Stack

os.environ.update(session_services.session().environment())
# The web process warns, and warnings are errors here, when the folder of collected files is not there.
(REPOSITORY / "build" / "static").mkdir(parents=True, exist_ok=True)


def pytest_configure() -> None:
    import django
    from django.conf import settings

    django.setup()
    # With DJANGO_SETTINGS_MODULE set, Django was configured before this file and would empty another database.
    if settings.DATABASES["default"]["NAME"] != session_services.DATABASE:
        raise pytest.UsageError("Unset DJANGO_SETTINGS_MODULE: tests bring their own database.")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Parallel sessions have servers of their own, and must not load their settings before they know them."""
    os.environ.pop("DJANGO_SETTINGS_MODULE")


@pytest.fixture(scope="session")
def services() -> Iterator[Services]:
    """The session's servers, for tests that need their addresses."""
    yield from session_services.use()


@pytest.fixture(autouse=True)
def _nothing_remembered(services: Services) -> None:
    """Each test starts with an empty Valkey, as it starts with an empty database, and so does what was read of both."""
    from apps.accounts.public.identity import forget_all
    from apps.conversations.services.registry import forget_models

    services.valkey.call("FLUSHALL")
    forget_models()
    forget_all()


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
    """A real S3 server's environment (S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY, S3_SECRET_KEY, S3_REGION).

    The bucket exists and is empty at first; use a prefix of your own in it.
    """
    import boto3

    variables = services.seaweed.environment()
    client = boto3.client(
        "s3",
        endpoint_url=variables["S3_ENDPOINT"],
        aws_access_key_id=variables["S3_ACCESS_KEY"],
        aws_secret_access_key=variables["S3_SECRET_KEY"],
        region_name=variables["S3_REGION"],
    )
    client.create_bucket(Bucket=variables["S3_BUCKET"])
    return variables


@pytest.fixture
def start_stack(services: Services) -> Iterator[Callable[..., Stack]]:
    """Starts stacks (`start_stack(runners=2, replica_options=("--itl", "10"))`), stopped after the test."""
    with contextlib.ExitStack() as stacks:
        yield lambda **options: stacks.enter_context(Stack(services, **options))
