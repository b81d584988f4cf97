"""The repository keeps the house rules, and each rule finds what was broken on purpose."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from textwrap import dedent

import pytest

from infra.local.layout import REPOSITORY
from tests.guards.rules import (
    LONGEST_FILE,
    PYTHON_RULES,
    Module,
    Rule,
    file_size,
    no_async_orm,
    no_signals,
    one_outbound_client,
    one_reader_of_the_environment,
    owner_scoped,
    says_what_it_is_for,
    task_names,
)


@lru_cache(maxsize=1)
def sources() -> tuple[Module, ...]:
    """Every Python and TypeScript file that is ours, committed or not."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.ts", "*.tsx"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    there = [name for name in listed if (REPOSITORY / name).is_file()]
    return tuple(Module(PurePosixPath(name), (REPOSITORY / name).read_text()) for name in there)


def python() -> Iterator[Module]:
    return (module for module in sources() if module.path.suffix == ".py")


def test_there_is_something_to_check() -> None:
    assert len({module.app for module in python()}) >= 6
    assert any(module.path.suffix == ".tsx" for module in sources())


@pytest.mark.parametrize("rule", PYTHON_RULES, ids=lambda rule: rule.__name__)
def test_the_repository_keeps_the_rule(rule: Rule) -> None:
    violations = [str(violation) for module in python() for violation in rule(module)]
    assert not violations, "\n".join(violations)


def test_files_of_the_front_end_are_short_too() -> None:
    long = [str(violation) for module in sources() if module.path.suffix != ".py" for violation in file_size(module)]
    assert not long, "\n".join(long)


# Rule, path, code that breaks it, code that is the right way.
SEEDED = [
    (no_async_orm, "apps/files/realtime/x.py", "async def f(q): return await q.aget(id=1)", "async def f(q): return q"),
    (
        no_async_orm,
        "apps/files/realtime/x.py",
        "from channels.db import database_sync_to_async",
        "from apps.core.db import in_db",
    ),
    (
        owner_scoped,
        "apps/files/selectors.py",
        "def read(actor, file_id): return File.objects.get(id=file_id)",
        "def read(actor, file_id): return File.objects.get(id=file_id, organization_id=actor.organization_id)",
    ),
    (
        owner_scoped,
        "apps/files/services/x.py",
        "def write(*, actor, ids): File.objects.filter(pk__in=ids).update(name='')",
        "def write(*, actor, file): File.objects.filter(pk=file.id).update(name='')",
    ),
    (owner_scoped, "apps/files/api/views.py", "rows = File.objects.all()", "rows = list_files(actor)"),
    (
        owner_scoped,
        "apps/files/selectors.py",
        "def read(id): return get_object_or_404(File, id=id)",
        "def read(id): return access_file(actor, id)",
    ),
    (
        task_names,
        "apps/files/tasks.py",
        "@shared_task\ndef parse(): ...",
        "@shared_task(name='files.parse')\ndef f(): ...",
    ),
    (
        task_names,
        "apps/files/tasks.py",
        "@app.task(name='apps.files.tasks.parse', bind=True)\ndef parse(self): ...",
        "@app.task(bind=True, name='files.parse_page')\ndef parse(self): ...",
    ),
    (file_size, "apps/files/x.py", "x = 1\n" * (LONGEST_FILE + 1), "x = 1\n" * LONGEST_FILE),
    (
        one_reader_of_the_environment,
        "apps/files/x.py",
        "import os\nkey = os.environ['KEY']",
        "from django.conf import settings\nkey = settings.KEY",
    ),
    (one_reader_of_the_environment, "apps/files/x.py", "from os import getenv", "from os import sep"),
    (one_outbound_client, "apps/agents/x.py", "import httpx", "from apps.core.egress import fetch"),
    (one_outbound_client, "apps/agents/x.py", "from urllib import request", "from urllib import parse"),
    (one_outbound_client, "apps/agents/x.py", "import http.client as c", "import http.cookies as c"),
    (no_signals, "apps/files/x.py", "from django.db.models.signals import post_save", "from django.db import models"),
    (
        no_signals,
        "apps/files/models.py",
        "class File:\n    def save(self): ...",
        "class File:\n    def __str__(self): ...",
    ),
    (says_what_it_is_for, "apps/files/x.py", "x = 1", '"""What x is."""\nx = 1'),
]


@pytest.mark.parametrize(
    ("rule", "path", "broken", "right"), SEEDED, ids=lambda value: getattr(value, "__name__", None)
)
def test_a_rule_finds_what_was_broken_on_purpose(rule: Rule, path: str, broken: str, right: str) -> None:
    assert list(rule(Module(PurePosixPath(path), dedent(broken))))
    assert not list(rule(Module(PurePosixPath(path), dedent(right))))


def test_every_rule_has_a_seeded_violation() -> None:
    assert {rule for rule, *_ in SEEDED} == set(PYTHON_RULES)
