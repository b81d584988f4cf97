"""Parley's processes, and people who send it hostile files, each until it has ended."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, LiteralString

import httpx
import psycopg

from tests.bench.poison.judge import ENDED, Outcome
from tests.bench.poison.types import Poison
from tests.factories import documents
from tests.stack import Stack

PATIENCE_S = 400.0
NEIGHBOUR_PAGES = 3
CELERY = ("-m", "celery", "-A", "apps.config.celery:app", "worker", "--without-gossip", "--without-mingle")


def start_workers(stack: Stack, *, vectors: bool = False) -> list[int]:
    """Workers as `make up` starts them; vectors, which are made when a file has ended, only if asked. Returns ids."""
    for queues, size in (("ingest,default,embed" if vectors else "ingest,default", 2), ("ocr", 1)):
        name = f"worker-{queues.partition(',')[0]}"
        own = ("-Q", queues, "-c", str(size), "-n", f"{name}@%h", "--loglevel", "INFO")
        beat = ("-B", "-s", str(stack.folder / "beat")) if size > 1 else ()
        stack.launch(name, (*CELERY, *own, *beat), lambda me: me.printed(" ready."), OMP_THREAD_LIMIT="1")
    return [stack.pid("worker-ingest"), stack.pid("worker-ocr")]


@dataclass(frozen=True, slots=True)
class Sent:
    """An upload whose parts have all arrived."""

    file_id: str
    parts: list[dict[str, Any]]


class Person:
    """An account and its client of the API; looks at the rows for how a file ended, which costs the web nothing."""

    def __init__(self, stack: Stack, number: int) -> None:
        headers = {"Authorization": f"Bearer {stack.api_key(f'person{number}@example.org')}"}
        self._http = httpx.Client(base_url=stack.url(), headers=headers, timeout=60)
        self._rows = psycopg.connect(stack.services.database_url(stack.name), autocommit=True)

    def close(self) -> None:
        self._http.close()
        self._rows.close()

    def send_parts(self, name: str, body: bytes) -> Sent | None:
        """All bytes of a file, whose upload is not completed yet; None when it was refused."""
        answer = self._http.post("/api/files", json={"name": name, "size": len(body)})
        if answer.status_code != 201:
            return None
        started, parts = answer.json(), []
        step = started["upload"]["part_size"]
        for part in started["upload"]["parts"]:
            chunk = body[(part["number"] - 1) * step :][:step]
            tag = self._http.put(part["url"], content=chunk).raise_for_status().headers["etag"]
            parts.append({"number": part["number"], "etag": tag})
        return Sent(str(started["file"]["id"]), parts)

    def complete(self, sent: Sent) -> str:
        self._http.post(f"/api/files/{sent.file_id}/complete", json={"parts": sent.parts}).raise_for_status()
        return sent.file_id

    def delete(self, file_id: str) -> None:
        self._http.delete(f"/api/files/{file_id}").raise_for_status()

    def upload(self, name: str, body: bytes) -> str | None:
        """The file's id; None when it was refused."""
        sent = self.send_parts(name, body)
        return None if sent is None else self.complete(sent)

    def send(self, poison: Poison) -> Outcome:
        file_id = self.upload(poison.name, poison.make())
        if file_id is None:
            return Outcome(poison.name, "refused", "", 0.0)
        begun = time.monotonic()
        state, reason = self.until_ended(file_id)
        return Outcome(poison.name, state, reason, time.monotonic() - begun)

    def ask(self, sql: LiteralString, *parameters: str) -> Any:
        """The first value of the first row; None when there is no row."""
        row = self._rows.execute(sql, parameters).fetchone()
        return row[0] if row else None

    def until_ended(self, file_id: str) -> tuple[str, str]:
        """The file's last state and the reason for it; "unfinished" when that takes too long."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            row = self._rows.execute("SELECT state, error_code FROM files_file WHERE id = %s", [file_id]).fetchone()
            if row is not None and row[0] in ENDED:
                return str(row[0]), str(row[1])
            time.sleep(0.05)
        return "unfinished", ""

    def send_neighbour(self, number: int) -> bool:
        """A healthy document that nobody sent before; whether it can be read in full."""
        fact = documents.Fact(2, f"The signal of buoy {number} was seen at dawn.", "", "")
        file_id = self.upload("healthy.pdf", documents.digital_pdf(NEIGHBOUR_PAGES, seed=number, facts=[fact]))
        if file_id is None or self.until_ended(file_id)[0] != "ready":
            return False
        pages = self._http.get(f"/api/files/{file_id}/pages").json()["results"]
        text = self._http.get(f"/api/files/{file_id}/pages/2").json()["text"]
        whole = [page["state"] for page in pages] == ["ready"] * NEIGHBOUR_PAGES
        return whole and fact.sentence in " ".join(text.split())


class Neighbour(threading.Thread):
    """Sends healthy documents, one after another, for as long as the hostile ones come."""

    def __init__(self, person: Person) -> None:
        super().__init__(name="neighbour", daemon=True)
        self._person, self._over = person, threading.Event()
        self.sent = self.failed = 0

    def run(self) -> None:
        while not self._over.wait(1.0):
            self.sent += 1
            self.failed += 1
            self.failed -= self._person.send_neighbour(self.sent)

    def stop(self) -> None:
        self._over.set()
        self.join()


def send_all(people: Iterable[Person], poisons: Iterable[Poison], told: Callable[[Outcome], None]) -> list[Outcome]:
    """Each person sends one at a time; `told` hears of each end. Raises what went wrong with any of them."""
    waiting: queue.SimpleQueue[Poison] = queue.SimpleQueue()
    for poison in poisons:
        waiting.put(poison)
    outcomes: list[Outcome] = []
    errors: list[Exception] = []

    def work(person: Person) -> None:
        try:
            while not errors:
                outcomes.append(person.send(waiting.get_nowait()))
                told(outcomes[-1])
        except queue.Empty:
            return
        except (httpx.HTTPError, psycopg.Error) as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return outcomes
