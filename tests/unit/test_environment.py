"""The test environment itself: real servers, no way out, warnings that fail."""

from __future__ import annotations

import socket
import warnings

import pytest
from pytest_socket import SocketConnectBlockedError

from tests.services import Services


def test_the_network_is_closed_but_for_loopback(services: Services) -> None:
    with pytest.raises(SocketConnectBlockedError):
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    with socket.create_connection(("127.0.0.1", services.valkey.port), timeout=1) as connection:
        assert connection.getpeername()[1] == services.valkey.port


def test_a_warning_fails_the_test_it_appears_in() -> None:
    with pytest.raises(UserWarning):
        warnings.warn("anything", stacklevel=1)


@pytest.mark.django_db
def test_the_database_is_the_sessions_own_and_migrated(services: Services) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("select current_database(), inet_server_port(), to_regtype('vector')::text")
        assert cursor.fetchone() == ("parley_test", services.postgres.port, "vector")
        cursor.execute("select count(*) from django_migrations")
        assert cursor.fetchone()[0] > 10
