"""The line as whoever accepts runs sees it: asked before anything is written, while runners execute what was accepted.

Responsible for: a place, or a place in line, in the run's name, until the runner that takes the run up asks with the
same ticket. Synchronous, without heartbeat or clock: what is never taken up lapses (`Policy.gate_s`), and before any
runner lives there is no line. Leaves to the caller what to do then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis

from inference.admission.policy import Policy
from inference.admission.types import Ask
from inference.admission.verbs import Gone, Granted, NoneReady, Refused, answered, asking, build, place_in
from inference.queueing import WaitState

_OWNER = "gate"
_NOW = ""  # by the server's clock


class Gate:
    """Every method raises redis.RedisError when Valkey is away; `Stranger`, which is one, when no runner lives."""

    def __init__(self, valkey: Callable[[], redis.Redis], policy: Policy) -> None:
        self._valkey = valkey
        self._scripts = build(policy)

    def ask(self, ask: Ask) -> Granted | WaitState | Refused | NoneReady:
        return answered(self._run("ask", _NOW, "", _OWNER, *asking(ask, asked="", mark=0, again="")))

    def leave(self, ticket: str) -> None:
        """Give up what was asked for; a runner that has taken it up keeps it."""
        self._run("release", _NOW, "", _OWNER, ticket, 0, 0)

    def where(self, ticket: str) -> Granted | WaitState | Gone:
        """Of any ticket, whoever has it."""
        return place_in(self._run("where", _NOW, ticket)[0])

    def _run(self, verb: str, *arguments: str | float) -> Any:
        script, valkey = self._scripts[verb], self._valkey()
        try:
            return valkey.evalsha(script.digest, 0, *arguments)
        except redis.exceptions.NoScriptError:
            return valkey.eval(script.source, 0, *arguments)
