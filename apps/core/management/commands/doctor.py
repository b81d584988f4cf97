"""Examine this installation: a line for each thing looked at, and what to do about it.

    python manage.py doctor [--json]

Exit status 0 when nothing failed (warnings are allowed), 1 otherwise.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from apps.core.checkup import Finding, Level, examine


class Command(BaseCommand):
    help = "Examine this installation and say what to do about what is wrong."
    # The checks must run even when the URL map or a model is broken.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="For programs.")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = examine()
        if options["json"]:
            self.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=1))
        else:
            for finding in findings:
                self._print(finding)
            self._sum_up(findings)
        if any(finding.level is Level.FAIL for finding in findings):
            raise SystemExit(1)

    def _print(self, finding: Finding) -> None:
        style = {Level.OK: self.style.SUCCESS, Level.WARN: self.style.WARNING, Level.FAIL: self.style.ERROR}
        word = style[finding.level](f"{finding.level:<4}")
        self.stdout.write(f"  {word}  {finding.name:<20} {finding.found}")
        if finding.advice:
            self.stdout.write(f"        {'':<20} {finding.advice}")

    def _sum_up(self, findings: list[Finding]) -> None:
        failed = sum(finding.level is Level.FAIL for finding in findings)
        warned = sum(finding.level is Level.WARN for finding in findings)
        self.stdout.write(f"\n  {failed} failed, {warned} warnings, {len(findings) - failed - warned} fine")
