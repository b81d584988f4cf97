"""How soon the first page of a long document can be found, and whether a worker grows with what it reads.

    python -m tests.bench.ingest [--pages 600] [--files 1000]

Real processes: a web that receives the uploads, Celery workers with the children that read, Postgres and Valkey. The
first page is searchable once its passages are indexed; the time runs from when the last byte was sent. That is
measured on an idle machine, and while the vectors of two such documents are made. For growth one process reads small
documents of several kinds, and makes their vectors: its resident memory after the last is compared with that after a
tenth of them. Writes build/bench/ingest.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from infra.local.layout import REPOSITORY
from tests.bench.poison.sending import CELERY, Person, start_workers
from tests.bench.poison.watch import children
from tests.factories import documents, formats
from tests.services import session
from tests.stack import Stack

REPORT = REPOSITORY / "build" / "bench" / "ingest.json"
FIRST_PAGE_GOAL_S, GROWTH_GOAL = 2.0, 0.10
GOAL_FILES = 1_000
"""The goal of growth is one for so many files."""
ROUNDS, BUSY = 3, 2
ACCOUNT_OF = 500  # documents an account, which may have a thousand
Figures = dict[str, dict[str, Any]]

SMALL: tuple[tuple[str, Callable[[int], bytes]], ...] = (
    ("pdf", lambda seed: documents.short_pdf(2, seed=seed)),
    ("docx", lambda seed: documents.word(documents.sentences(3, seed))),
    ("csv", lambda seed: "\n".join(f"row {n},{seed * n}" for n in range(40)).encode()),
    ("md", lambda seed: ("# Notes\n\n" + " ".join(documents.sentences(6, seed))).encode()),
    ("xlsx", lambda seed: formats.workbook({"a": [["number", "value"], *([n, n * seed] for n in range(20))]})),
    ("html", lambda seed: f"<h1>Page</h1><p>{' '.join(documents.sentences(5, seed))}</p>".encode()),
    ("eml", lambda seed: formats.mail("Subject", " ".join(documents.sentences(5, seed)))),
)


@contextmanager
def one_worker() -> Iterator[Stack]:
    """A stack with one process for all queues but recognition."""
    with Stack(session(), webs=1, runners=0, replicas=0) as stack:
        options = ("-Q", "ingest,default,embed", "-c", "1", "-n", "worker@%h", "--loglevel", "INFO")
        stack.launch("worker", (*CELERY, *options), lambda me: me.printed(" ready."))
        yield stack


def first_page_s(person: Person, pages: int, seed: int) -> tuple[float, str]:
    """Seconds from the end of the upload until something of the document can be found; its id when it was read."""
    sent = person.send_parts(f"long-{seed}.pdf", documents.digital_pdf(pages, seed=seed))
    assert sent is not None
    begun = time.monotonic()
    file_id = person.complete(sent)
    while not person.ask("SELECT EXISTS (SELECT FROM files_passage WHERE file_id = %s)", file_id):
        time.sleep(0.01)
    took = time.monotonic() - begun
    person.until_ended(file_id)
    return took, file_id


def first_pages(person: Person, pages: int) -> tuple[list[float], list[float]]:
    """First when nothing else is going on, then when vectors are made of all documents but the last."""
    idle = []
    for seed in range(1, ROUNDS + 1):
        took, file_id = first_page_s(person, pages, seed)
        person.delete(file_id)
        idle.append(took)
    beside = [first_page_s(person, pages, 100 + seed)[0] for seed in range(BUSY + ROUNDS)][BUSY:]
    waiting = person.ask("SELECT count(*) FROM files_file WHERE state = 'ready' AND searchable = 'keyword'")
    assert waiting > BUSY, "vectors were made all the time"
    return idle, beside


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def growth(stack: Stack, files: int) -> tuple[float, float]:
    """Resident memory after all over that after a tenth, minus 1; and the latter in MiB."""
    (process,) = children(stack.pid("worker"))
    after_tenth = 0
    for account in range(0, files, ACCOUNT_OF):
        with closing(Person(stack, account)) as person:
            for number in range(account, min(files, account + ACCOUNT_OF)):
                ending, make = SMALL[number % len(SMALL)]
                file_id = person.upload(f"{number}.{ending}", make(number + 1))
                assert file_id is not None
                state, reason = person.until_ended(file_id)
                assert state == "ready", (ending, state, reason)
                if number + 1 == files // 10:
                    after_tenth = resident_kib(process)
    assert children(stack.pid("worker")) == [process], "it was another process in the end"
    return resident_kib(process) / after_tenth - 1, after_tenth / 1024


def figure(value: float, unit: str, goal: float | None = None) -> dict[str, Any]:
    return {"value": round(value, 3), "unit": unit, "goal": goal, "ok": goal is None or value <= goal}


def measure(pages: int, files: int) -> Figures:
    with Stack(session(), webs=1, runners=0, replicas=0) as stack, closing(Person(stack, 1_000_000)) as person:
        start_workers(stack, vectors=True)
        warm_up = person.upload("warm-up.pdf", documents.short_pdf(2))
        assert warm_up is not None
        person.until_ended(warm_up)
        idle, beside = first_pages(person, pages)
    with one_worker() as stack:
        grown, first_mib = growth(stack, files)
    return {
        "first_page_s": figure(max(idle), "s", FIRST_PAGE_GOAL_S),
        "first_page_beside_vectors_s": figure(max(beside), "s"),
        "ingest_rss_growth": figure(grown, "share", GROWTH_GOAL if files >= GOAL_FILES else None),
        "ingest_rss_after_tenth": figure(first_mib, "MiB"),
        "ingest_files": figure(files, "files"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--files", type=int, default=GOAL_FILES)
    options = parser.parse_args()
    figures = measure(options.pages, options.files)
    for name, entry in figures.items():
        goal = "" if entry["goal"] is None else f"  goal {entry['goal']}  {'ok' if entry['ok'] else 'MISSED'}"
        print(f"{name:32} {entry['value']:>9} {entry['unit']:8}{goal}")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(entry["ok"] for entry in figures.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
