"""Quality and speed of retrieval on public sets with judgements, through the code that serves people.

    python -m tests.bench.retrieval --data DIR [--json build/bench/retrieval.json]

DIR holds `scifact` (in BEIR's form), `chunking` and `code-retrieval`. Each set is kept as files are, cut, indexed and
embedded by the product; vectors are kept in build/cache, as they take minutes. Beside each figure: BM25 alone and
vectors alone, from the same candidates. The weights of the fusion are learnt on two other sets, `documentation` (in the
folder of the code) and `library` (Python's own); what they prefer is printed too.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path

import django

from tests import services as session_services

GOALS: Mapping[str, float] = {
    "scifact_ndcg10": 0.735,
    "scifact_recall100": 0.96,
    "scifact_ndcg10_untuned": 0.72,
    "chunking_recall5": 0.93,
    "code_pass10": 0.90,
    "scope_recall10": 0.95,
    "scope_p95_ms": 40.0,
    "index_pages_per_cpu_s": 60.0,
}


def report(figures: Mapping[str, float], path: Path) -> None:
    entries = {}
    for name, value in figures.items():
        goal = GOALS.get(name)
        lower = name.endswith("_ms")
        ok = goal is None or (value <= goal if lower else value >= goal)
        unit = "ms" if lower else "pages/CPU-s" if name.endswith("cpu_s") else "0..1"
        entries[name] = {"value": round(value, 4), "unit": unit, "goal": goal, "ok": ok}
        print(f"{name:40} {value:10.4f}  {'' if goal is None else f'goal {goal:g} ' + ('ok' if ok else 'MISSED')}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="folder with the sets")
    parser.add_argument("--json", type=Path, default=Path("build/bench/retrieval.json"))
    options = parser.parse_args()
    services = session_services.session()
    os.environ.update(services.environment())
    django.setup()
    try:
        _ = services.postgres, services.valkey
        from tests.bench.retrieval.figures import measure

        report(measure(options.data), options.json)
    finally:
        services.stop()


if __name__ == "__main__":
    main()
