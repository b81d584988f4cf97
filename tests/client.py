"""A plain API client for stacks of real processes: one thread, one connection a request, and streams that may break.

Knows nothing of Django. What a stream says is read by `tests.reader`.
"""

from __future__ import annotations

import http.client
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tests.reader import Audit, Event, EventParser, Reading, reduce

T = TypeVar("T")
Broken = (OSError, http.client.HTTPException)
"""What a killed server looks like from outside."""


class Refused(Exception):
    """An answer with an error status."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(f"HTTP {reply.status}: {reply.data[:300]!r}")
        self.reply = reply
        self.status = reply.status


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    def must_be(self, *statuses: int) -> Any:
        """The JSON of a reply that must have one of these statuses."""
        if self.status not in statuses:
            raise Refused(self)
        return self.json if self.data else None


class Api:
    """Requests to one web process by one key."""

    def __init__(self, base: str, key: str, *, timeout: float = 30.0) -> None:
        parts = urlsplit(base)
        self.host, self.port, self.key, self.timeout = parts.hostname or "", parts.port or 80, key, timeout

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Any status is a reply. Raises one of `Broken` when the server goes away."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout or self.timeout)
        data = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, data, {**self._headers, **(headers or {})})
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, names, response.read())
        finally:
            connection.close()

    @property
    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}", "content-type": "application/json"}

    def get(self, path: str) -> Any:
        return self.call("GET", path).must_be(200)

    def new_conversation(self) -> str:
        id: str = self.call("POST", "/api/conversations", {}).must_be(201)["id"]
        return id

    def ask(
        self, conversation: str, text: str, *, parent: str | None = None, client_id: str | None = None, **body: Any
    ) -> Any:
        """`question`, `answer` and `run` of a new question."""
        body = {"client_id": client_id or str(uuid.uuid4()), "text": text, "parent_id": parent, **body}
        return self.call("POST", f"/api/conversations/{conversation}/messages", body).must_be(200, 201)

    def run(self, run: str) -> Any:
        return self.get(f"/api/runs/{run}")

    def cancel(self, run: str) -> Any:
        return self.call("POST", f"/api/runs/{run}/cancel", {}).must_be(200)

    def messages(self, conversation: str) -> list[Any]:
        rows: list[Any] = self.get(f"/api/conversations/{conversation}/messages")["results"]
        return rows

    @contextmanager
    def events(
        self, run: str, *, after: int | None = None, last_event_id: int | None = None, idle: float = 30.0
    ) -> Iterator[EventStream]:
        """A run's stream. Raises Refused when there is none; silence of `idle` seconds is a TimeoutError."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=idle)
        query = "" if after is None else f"?starting_after={after}"
        headers = self._headers if last_event_id is None else {**self._headers, "last-event-id": str(last_event_id)}
        try:
            connection.request("GET", f"/api/runs/{run}/events{query}", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                raise Refused(Reply(response.status, dict(response.getheaders()), response.read()))
            yield EventStream(response)
        finally:
            connection.close()

    def read(self, run: str, *, after: int = 0, idle: float = 30.0) -> Audit:
        """Read a run to its end over one connection."""
        audit = Audit(Reading(seq=after))
        with self.events(run, after=after, idle=idle) as stream:
            for event in stream:
                audit.take(event)
        return audit


class EventStream:
    """The events of one connection. `beats` counts heartbeats."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.beats = 0
        self._parser = EventParser()
        self._ready: list[Event] = []

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._ready:
            data = self.response.read1(65_536)
            if not data:
                raise StopIteration
            self.beats += data.count(b": hb\n\n")
            self._ready = self._parser.feed(data)
        return self._ready.pop(0)

    def until(self, wanted: Callable[[Reading], bool], reading: Reading | None = None) -> Reading:
        """Read on until the reading is as wanted. Raises AssertionError when the stream ends before."""
        reading = reading or Reading()
        for event in self:
            reading = reduce(reading, event)
            if wanted(reading):
                return reading
        raise AssertionError(f"the stream ended at {reading.view()}")


def eventually(look: Callable[[], T | None], *, within: float = 10.0, every: float = 0.05) -> T:
    """The first true value; AssertionError with the last one when none comes in time."""
    deadline = time.monotonic() + within
    while not (seen := look()):
        assert time.monotonic() < deadline, f"not within {within:g} s: {seen!r}"
        time.sleep(every)
    return seen
