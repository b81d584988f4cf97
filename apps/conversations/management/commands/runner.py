"""`manage.py runner`: executes runs until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import uvloop
from django.core.management.base import BaseCommand

from apps.conversations.runner.process import RunnerProcess


class Command(BaseCommand):
    help = "Execute runs: claim them, stream answers from replicas, write event logs and checkpoints."

    def handle(self, *args: Any, **options: Any) -> None:
        gc.freeze()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_main())


async def _main() -> None:
    await RunnerProcess().run()
