"""A runner that never gives a place back while it lives, to show that the checkers notice:
`python -m tests.faults.leaking`.

Its answers are those of any other runner; only who comes after them finds fewer and fewer places.
"""

from __future__ import annotations

import asyncio
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.live_settings")

import django

django.setup()

from django.conf import settings  # noqa: E402

from apps.conversations.runner.process import RunnerProcess  # noqa: E402
from apps.conversations.services.line import admission_policy  # noqa: E402
from apps.core.ids import new_id  # noqa: E402
from inference.admission.client import Admission, _Ticket  # noqa: E402
from inference.client import ReplicaPool  # noqa: E402


class LeakingAdmission(Admission):
    async def _release(self, ticket: _Ticket) -> None:
        """The seeded bug."""


class LeakingRunner(RunnerProcess):
    def __init__(self) -> None:
        super().__init__()
        self.admission = LeakingAdmission(settings.REDIS_URL, owner=new_id().hex, policy=admission_policy())
        self.pool = ReplicaPool(settings.REDIS_URL, replica_urls=settings.REPLICA_URLS, admission=self.admission)


async def main() -> None:
    await LeakingRunner().run()


if __name__ == "__main__":
    asyncio.run(main())
