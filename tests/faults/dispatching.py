"""A runner whose every pass starts a tool, to show what a retry would do: `python -m tests.faults.dispatching`.

How often a run started its tool is counted in Valkey. With RETRY_AFTER_DISPATCH the rule that forbids another pass is
switched off, as in a product that retries whatever fails.
"""

from __future__ import annotations

import asyncio
import os
from uuid import UUID

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.live_settings")

import django

django.setup()

from apps.conversations.runner.execution import Execution  # noqa: E402
from apps.conversations.runner.preparing import Prepared  # noqa: E402
from apps.conversations.runner.process import RunnerProcess  # noqa: E402
from apps.conversations.types import RunResult  # noqa: E402
from apps.core.valkey import valkey  # noqa: E402


def counter_key(run_id: UUID) -> str:
    return f"tests:tool-starts:{run_id}"


class Dispatching(Execution):
    async def _stream(self, prepared: Prepared) -> RunResult:
        await self.count_dispatch()
        await asyncio.to_thread(valkey().incr, counter_key(self.claimed.id))
        return await super()._stream(prepared)


class Forgetful(Dispatching):
    """The seeded bug."""

    def _check_what_is_written(self) -> None:
        return


class DispatchingRunner(RunnerProcess):
    kind_of_execution = Forgetful if os.environ.get("RETRY_AFTER_DISPATCH") else Dispatching


async def main() -> None:
    await DispatchingRunner().run()


if __name__ == "__main__":
    asyncio.run(main())
