"""What it costs a question to look for older turns in a long conversation, beside building its prompt without.

    python -m tests.bench.context [--turns 2000] [--json build/bench/context.json]

The conversation is one branch of so many turns of a few sentences, indexed as runs leave it, with made-up vectors.
Times are of the whole search as a runner does it, the question's vector included: median and 95th percentile of many.
`without` is what the prompt costs else: reading the newest 200 turns and fitting them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import django

from tests import services as session_services

ROUNDS = 60
SUBJECTS = (
    "garden", "harbour", "violin", "tax return", "bicycle", "telescope", "sourdough", "glacier", "marathon", "chess",
    "orchard", "lighthouse", "pottery", "railway", "beehive", "mortgage", "aquarium", "theatre", "volcano", "passport",
)  # fmt: skip
TEXT = "About the {subject}: we said in {year} that {count} of them were seen near {place}, which nobody had expected. "


def said(turns: int) -> list[str]:
    chance = random.Random(7)

    def sentence() -> str:
        return TEXT.format(
            subject=chance.choice(SUBJECTS),
            year=chance.randint(1900, 2030),
            count=chance.randint(2, 999),
            place=f"{chance.choice(SUBJECTS)} number {chance.randint(1, 500)}",
        )

    return [" ".join(sentence() for _ in range(chance.randint(2, 8))) for _ in range(turns)]


def _timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def _vector(chance: random.Random) -> str:
    """Any: what is near what does not change the work."""
    return "[" + ",".join(f"{chance.uniform(-0.09, 0.09):.5f}" for _ in range(384)) + "]"


def measure(turns: int) -> dict[str, float]:
    from django.db import connection

    from apps.conversations.runner.context import build_context
    from apps.conversations.services import older, runs
    from apps.conversations.types import RunParams
    from apps.files.public import vector_of
    from tests.factories.accounts import make_actor
    from tests.factories.long import make_long

    actor = make_actor()
    conversation, ids = make_long(actor, said(turns + 1))
    leaf = ids[-1]
    figures: dict[str, float] = {}
    figures["context_first_index_ms"] = _timed(
        lambda: older.index_turns(actor, conversation, leaf, most=older.INDEXED_AT_A_QUESTION)
    )
    chance = random.Random(3)
    while older.index_turns(actor, conversation, leaf):
        continue
    while texts := older.unembedded(actor, conversation):
        older.save_vectors(conversation, {id: _vector(chance) for id, _ in texts})
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    found, without, vectors = list[float](), list[float](), list[float]()
    for number in range(ROUNDS):
        question = f"What did we say about the {chance.choice(SUBJECTS)} in {chance.randint(1900, 2030)}, {number}?"

        def build() -> None:
            past = runs.load_turns(conversation, leaf)
            build_context(RunParams(), (), past, found=None, context_length=8_192, max_output=1_024)

        def search(question: str = question) -> None:
            vector = vector_of(actor, question)
            older.find_older(actor, conversation, leaf, question=question, vector=vector, sent=ids[-40:])

        def embed(question: str = question) -> None:
            vector_of(actor, question + " Really?")

        without.append(_timed(build))
        vectors.append(_timed(embed))
        found.append(_timed(search))
    figures["context_question_vector_ms"] = statistics.median(vectors)
    figures["context_older_turns_ms"] = statistics.median(found)
    figures["context_older_turns_p95_ms"] = statistics.quantiles(found, n=20)[-1]
    figures["context_without_ms"] = statistics.median(without)
    figures["context_older_turns_ratio"] = figures["context_older_turns_ms"] / figures["context_without_ms"]
    return figures


def report(figures: dict[str, float], path: Path) -> None:
    entries = {}
    for name, value in figures.items():
        unit = "x" if name.endswith("ratio") else "ms"
        entries[name] = {"value": round(value, 2), "unit": unit, "goal": None, "ok": True}
        print(f"{name:32} {value:9.2f} {unit}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--json", type=Path, default=Path("build/bench/context.json"))
    options = parser.parse_args()
    services = session_services.session()
    os.environ.update(services.environment())
    django.setup()
    try:
        _ = services.postgres, services.valkey
        report(measure(options.turns), options.json)
        return 0
    finally:
        services.stop()


if __name__ == "__main__":
    raise SystemExit(main())
