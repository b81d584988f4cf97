"""Runs every check; one that breaks is itself a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from django.apps import apps

from apps.core.checkup import programs, stores, work
from apps.core.checkup.types import Finding, Level, fail


@dataclass(frozen=True)
class Check:
    """A check, and the findings that it cannot do without."""

    name: str
    run: Callable[[], list[Finding]]
    needs: tuple[str, ...] = ()


def checks() -> Iterator[Check]:
    """Our own, then each app's, in the order of a person's questions: does it run, does it store, does it work."""
    yield Check("programs", programs.check)
    yield Check("secrets", stores.check_secrets)
    yield Check("disk", stores.check_disk)
    yield Check("postgres", stores.check_postgres)
    yield Check("valkey", stores.check_valkey)
    yield Check("migrations", work.check_migrations, ("postgres",))
    yield Check("queues", work.check_queues, ("valkey",))
    yield Check("models", work.check_replicas, ("valkey",))
    for app in apps.get_app_configs():
        if app.name.startswith("apps.") and app.name != "apps.core" and find_spec(f"{app.name}.checkup"):
            yield Check(app.label, import_module(f"{app.name}.checkup").check, ("postgres", "valkey"))


def examine() -> list[Finding]:
    findings: list[Finding] = []
    broken: set[str] = set()
    for check in checks():
        lacking = [name for name in check.needs if name in broken]
        if lacking:
            findings.append(fail(check.name, f"unknown: no {lacking[0]}", f"See {lacking[0]} above."))
            continue
        try:
            found = check.run()
        except Exception as error:  # noqa: BLE001 - a checkup must come to its end, whatever is broken
            found = [fail(check.name, f"{type(error).__name__}: {error}", "The check itself broke.")]
        broken |= {finding.name for finding in found if finding.level is Level.FAIL}
        findings += found
    return findings
