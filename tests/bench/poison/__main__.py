"""What hostile files do to the product: whether a worker dies, how long they take, how much memory, who suffers.

    python -m tests.bench.poison [--mutants 2000] [--only NAME]

Real processes: a web that receives the uploads, Celery workers with the children that read, Postgres and Valkey. Some
hundred files made to harm are sent two at a time; then mutants of small right files of every kind, four at a time. A
healthy document is sent beside them again and again. Writes build/bench/poison.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing

from infra.local.layout import REPOSITORY
from tests.bench.poison.corpus import corpus
from tests.bench.poison.judge import UNCLEAR, Figures, Outcome, figures, table
from tests.bench.poison.mutants import mutants
from tests.bench.poison.sending import Neighbour, Person, send_all, start_workers
from tests.bench.poison.types import Poison
from tests.bench.poison.watch import Watch
from tests.services import session
from tests.stack import Stack

REPORT = REPOSITORY / "build" / "bench" / "poison.json"
AT_ONCE, MUTANTS_AT_ONCE = 2, 4
_SLOW_S = 30.0


def show(title: str, outcomes: Sequence[Outcome], took_s: float) -> None:
    print(f"\n{title}: {len(outcomes)} files in {took_s:.0f} s\n{table(outcomes)}", flush=True)


def tell(outcome: Outcome) -> None:
    """Say at once which files are slow, or end in a way that says nothing about them."""
    if outcome.terminal_s > _SLOW_S or outcome.reason in UNCLEAR or outcome.state == "unfinished":
        print(f"    {outcome.name}: {outcome.end} after {outcome.terminal_s:.1f} s", flush=True)


def measure(poisons: Sequence[Poison], broken: Sequence[Poison]) -> Figures:
    with Stack(session(), webs=1, runners=0, replicas=0) as stack, ExitStack() as closed:
        workers = start_workers(stack)
        people = [closed.enter_context(closing(Person(stack, n))) for n in range(MUTANTS_AT_ONCE + 1)]
        watch, neighbour = Watch(workers), Neighbour(people.pop())
        watch.start()
        neighbour.start()
        outcomes: list[Outcome] = []
        for title, files, at_once in (("poison", poisons, AT_ONCE), ("mutants", broken, MUTANTS_AT_ONCE)):
            begun = time.monotonic()
            found = send_all(people[:at_once], files, tell)
            show(title, found, time.monotonic() - begun)
            outcomes += found
        neighbour.stop()
        watch.stop()
        alive = [name for name in ("worker-ingest", "worker-ocr") if stack.alive(name)]
    return figures(
        outcomes,
        deaths=watch.deaths + len(workers) - len(alive),
        peak_bytes=watch.peak_bytes,
        neighbours=neighbour.sent,
        failures=neighbour.failed,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=2_000)
    parser.add_argument("--only", default="", help="hostile files whose name contains this")
    options = parser.parse_args()
    poisons = [poison for poison in corpus() if options.only in poison.name]
    found = measure(poisons, list(mutants(options.mutants)))
    print()
    for name, entry in found.items():
        goal = "" if entry["goal"] is None else f"  goal {entry['goal']}  {'ok' if entry['ok'] else 'MISSED'}"
        print(f"{name:32} {entry['value']:>9} {entry['unit']:8}{goal}")
    if not options.only:
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if all(entry["ok"] for entry in found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
