"""Quality and speed of retrieval on a public set with judgements, through the code that serves people.

    python -m tests.bench.retrieval --data DIR [--limit N] [--json build/bench/retrieval.json]

DIR holds a BEIR set (corpus.jsonl, queries.jsonl, qrels/test.tsv), for instance SciFact. Each document is indexed as
a page of a file of 500, and embedded; vectors are kept in build/cache, as they take minutes. Prints nDCG@10 of
keywords, of vectors and of both, recall@100, the time of a search in four of the files (embedding the question
included), and the CPU that indexing takes. Weights of the fusion are the product's own: nothing is fitted to the set.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from tests import services as session_services

CACHE = Path("build/cache")
JUDGED_DEPTH = 100
GOALS: Mapping[str, float] = {
    "retrieval_ndcg10_keyword": 0.66,
    "retrieval_ndcg10_vector": 0.62,
    "retrieval_ndcg10_hybrid": 0.72,
    "retrieval_recall100_hybrid": 0.95,
    "retrieval_search_p50_ms": 40.0,
    "retrieval_search_p95_ms": 100.0,
    "retrieval_index_pages_per_cpu_s": 60.0,
}
LOWER_IS_BETTER = frozenset({"retrieval_search_p50_ms", "retrieval_search_p95_ms"})
UNITS = dict.fromkeys(LOWER_IS_BETTER, "ms") | {"retrieval_index_pages_per_cpu_s": "pages/CPU-s"}
PAGES_A_FILE = 500
FILES_SEARCHED = 4


@dataclass(frozen=True, slots=True)
class Judged:
    """A set of documents and questions; `relevant[question]` gives the gain of each document that is."""

    documents: Sequence[tuple[str, str, str]]
    questions: Sequence[tuple[str, str]]
    relevant: Mapping[str, Mapping[str, int]]


def load(folder: Path, limit: int | None) -> Judged:
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").open()]
    relevant: dict[str, dict[str, int]] = {}
    with (folder / "qrels" / "test.tsv").open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            relevant.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    questions = [json.loads(line) for line in (folder / "queries.jsonl").open()]
    judged = [(row["_id"], row["text"]) for row in questions if row["_id"] in relevant]
    if limit is not None:
        judged = judged[:limit]
    return Judged([(row["_id"], row.get("title", ""), row["text"]) for row in rows], judged, relevant)


def ndcg(ranking: Sequence[str], gains: Mapping[str, int], depth: int = 10) -> float:
    """Normalised discounted cumulative gain (Järvelin and Kekäläinen 2002)."""
    found = sum(gains.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(ranking[:depth]))
    best = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(sorted(gains.values(), reverse=True)[:depth]))
    return found / best if best else 0.0


def recall(ranking: Sequence[str], gains: Mapping[str, int], depth: int) -> float:
    wanted = {name for name, gain in gains.items() if gain > 0}
    return len(wanted & set(ranking[:depth])) / len(wanted) if wanted else 1.0


# Indexing


@dataclass(frozen=True, slots=True)
class Stored:
    """The set in the database. `names[file, page]` is the document that is there."""

    actor: Any
    files: Sequence[UUID]
    pages: Sequence[UUID]
    names: Mapping[tuple[UUID, int], str]


def _add_pages(judged: Judged) -> Stored:
    from apps.files.models import Page, PageState
    from tests.factories.accounts import make_actor
    from tests.factories.passages import make_file

    actor = make_actor()
    files: list[UUID] = []
    pages: list[UUID] = []
    names: dict[tuple[UUID, int], str] = {}
    for start in range(0, len(judged.documents), PAGES_A_FILE):
        part = judged.documents[start : start + PAGES_A_FILE]
        file = make_file(actor, name=f"{start}.txt", pages=len(part))
        rows = [
            Page(
                file=file,
                organization_id=actor.organization_id,
                number=number,
                state=PageState.READY,
                source="digital",
                text=text,
                elements=[
                    *([{"category": "Title", "text": title, "level": 1}] if title else []),
                    *([{"category": "NarrativeText", "text": text}] if text.strip() else []),
                ],
            )
            for number, (_, title, text) in enumerate(part, start=1)
        ]
        Page.objects.bulk_create(rows)
        files.append(file.id)
        pages += [row.id for row in rows]
        names |= {(file.id, number): name for number, (name, _, _) in enumerate(part, start=1)}
    return Stored(actor, files, pages, names)


def _cpu_s() -> float:
    """CPU of this process and of the database's backend for it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    backend = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + backend


def _index(pages: Sequence[UUID]) -> float:
    """Pages a CPU second, on a sample in the middle of the work."""
    from apps.files.indexing import index_page

    begin, end = len(pages) // 4, 3 * len(pages) // 4
    started = rate = 0.0
    for number, page in enumerate(pages):
        if number == begin:
            started = _cpu_s()
        if number == end:
            rate = (end - begin) / (_cpu_s() - started)
        index_page(page)
    return rate


def _embed(stored: Stored, folder: Path) -> None:
    """As `embed_file` does, with what an earlier run of this program made taken from disk."""
    from apps.files.indexing.embedder import VERSION, embed_passages
    from apps.files.indexing.embedding import _store
    from apps.files.indexing.passages import with_context
    from apps.files.models import Passage

    kept = CACHE / f"vectors-{folder.name}-{VERSION}.npz"
    known: dict[str, Any] = dict(np.load(kept)) if kept.exists() else {}
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh = 0
    for row in Passage.objects.filter(file_id__in=stored.files):
        text = with_context(row.heading, row.text)
        name = hashlib.sha256(text.encode()).hexdigest()[:20]
        if name not in known:
            (known[name],) = embed_passages([text])
            fresh += 1
            if fresh % 500 == 0:
                np.savez(kept, **known)
        _store(row.file_id, VERSION, [row.id], [known[name]])
    if fresh:
        np.savez(kept, **known)


# Searching


Ranking = Callable[[str], list[str]]


def _rankings(stored: Stored) -> dict[str, Ranking]:
    """The product's candidates under three weights. Names of documents, best first, each once."""
    from apps.files.models import Passage
    from apps.files.retrieval.fusion import KEYWORD_WEIGHT, fuse
    from apps.files.retrieval.search import _Search, _vector_of

    rows = Passage.objects.filter(file_id__in=stored.files).values_list("id", "file_id", "page_number")
    document = {passage: stored.names[file, page] for passage, file, page in rows}

    def rank(question: str, weight: float) -> list[str]:
        candidates, _ = _Search(stored.actor, stored.files, question, _vector_of(stored.actor, question)).candidates()
        fused = fuse(candidates, keyword_weight=weight)
        return list(dict.fromkeys(document[passage] for passage, _ in fused))

    return {
        "keyword": lambda question: rank(question, 1.0),
        "vector": lambda question: rank(question, 0.0),
        "hybrid": lambda question: rank(question, KEYWORD_WEIGHT),
    }


def _quality(judged: Judged, rankings: Mapping[str, Ranking]) -> Iterator[tuple[str, float]]:
    for name, ranking in rankings.items():
        found = [(ranking(text), judged.relevant[question]) for question, text in judged.questions]
        yield f"retrieval_ndcg10_{name}", sum(ndcg(*pair) for pair in found) / len(found)
        if name == "hybrid":
            total = sum(recall(*pair, JUDGED_DEPTH) for pair in found)
            yield "retrieval_recall100_hybrid", total / len(found)


def _search_ms(stored: Stored, judged: Judged) -> list[float]:
    """Whole searches by questions not asked before, so that embedding them counts. Sorted."""
    from apps.files.indexing import embedder
    from apps.files.retrieval import search_passages

    embedder._question.cache_clear()
    times = []
    for _, text in judged.questions[:100]:
        started = time.perf_counter()
        search_passages(stored.actor, file_ids=stored.files[:FILES_SEARCHED], query=text)
        times.append((time.perf_counter() - started) * 1000)
    return sorted(times)


def measure(folder: Path, limit: int | None) -> dict[str, float]:
    from django.db import connection

    judged = load(folder, limit)
    stored = _add_pages(judged)
    figures = {"retrieval_index_pages_per_cpu_s": _index(stored.pages)}
    _embed(stored, folder)
    with connection.cursor() as cursor:
        # What autovacuum does within a minute; index-only scans depend on it.
        cursor.execute("VACUUM (ANALYZE) files_passage, files_posting, files_page")
    figures |= dict(_quality(judged, _rankings(stored)))
    times = _search_ms(stored, judged)
    figures["retrieval_search_p50_ms"] = times[len(times) // 2]
    figures["retrieval_search_p95_ms"] = times[math.ceil(0.95 * len(times)) - 1]
    return figures


def report(figures: Mapping[str, float], path: Path) -> None:
    entries = {}
    for name, value in sorted(figures.items()):
        goal = GOALS[name]
        ok = value <= goal if name in LOWER_IS_BETTER else value >= goal
        entries[name] = {"value": round(value, 4), "unit": UNITS.get(name, "0..1"), "goal": goal, "ok": ok}
        print(f"{name:36} {value:10.4f} {UNITS.get(name, ''):12} goal {goal:g} {'ok' if ok else 'MISSED'}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="folder of a BEIR set")
    parser.add_argument("--limit", type=int, default=None, help="ask only the first N questions")
    parser.add_argument("--json", type=Path, default=Path("build/bench/retrieval.json"))
    options = parser.parse_args()
    services = session_services.session()
    os.environ.update(services.environment())
    import django

    django.setup()
    try:
        _ = services.postgres, services.valkey
        report(measure(options.data, options.limit), options.json)
    finally:
        services.stop()


if __name__ == "__main__":
    main()
