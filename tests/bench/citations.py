"""How many wrong citations are noticed, and how many right ones are suspected.

    python -m tests.bench.citations [--data DIR] [--json build/bench/citations.json]

Cases are generated (`tests.factories.claims`): a sentence cites a passage and states a quote, number, date or name of
it, in another form or wrong. Or it cites nothing and is matched by its words: a right one is a false alarm if its
passage is not shown free of doubt, a wrong one is noticed if none is. With DIR, which holds
`docs_evaluation_dataset.json` and `anthropic_docs.json` or a folder `code-retrieval` with them, also real answers, each
sentence citing all passages that the set gives for it, as they are and with one number or name changed, and as they are
without marks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import django

from tests import services as session_services
from tests.factories.claims import KINDS, Claim, claims, matched_claims

CASES = 1_500
"""Of each kind, right and wrong."""
GOAL, FALSE_ALARMS = 0.99, 0.02


def _cite(answer: str, passages: Sequence[str]) -> tuple[dict[str, Any], ...]:
    from apps.files.public import PassageHit, cite

    nobody = UUID(int=1)
    return cite(
        answer, [PassageHit(nobody, nobody, "report.pdf", 1, "", text, (), "digital", 1.0) for text in passages]
    )


def _suspected(answer: str, passages: Sequence[str]) -> bool:
    return any(citation["unsupported"] for citation in _cite(answer, passages))


def _doubted(case: Claim) -> bool:
    """Whether an answer without marks has no passage that is shown free of doubt, or, if it is right, not its own."""
    shown = [citation["n"] for citation in _cite(case.answer, case.passages) if not citation["unsupported"]]
    return case.number not in shown if case.true else not shown


def generated() -> dict[str, float]:
    figures = {}
    for name, true in (("unsupported_caught", False), ("false_alarms", True)):
        for kind in KINDS:
            cited = [_suspected(case.answer, case.passages) for case in claims(kind, CASES, true=true, seed=11)]
            matched = [_doubted(case) for case in matched_claims(kind, CASES, true=true, seed=11)]
            figures[f"citation_{name}_{kind}"] = sum(cited) / CASES
            figures[f"citation_{name}_matched_{kind}"] = sum(matched) / CASES
        for form in ("", "_matched"):
            each = [figures[f"citation_{name}{form}_{kind}"] for kind in KINDS]
            figures[f"citation_{name}{form}"] = sum(each) / len(KINDS)
    return figures


def _answers(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Sentences of real answers with the passages they rest on."""
    from apps.files.retrieval.citations import sentences

    sections = {row["chunk_link"]: row["text"] for row in json.loads((folder / "anthropic_docs.json").read_text())}
    for row in json.loads((folder / "docs_evaluation_dataset.json").read_text()):
        passages = [sections[link] for link in row["correct_chunks"] if link in sections]
        answer = row["correct_answer"]
        for start, end in sentences(answer) if passages else ():
            yield answer[start:end].strip(), passages


def _cited(sentence: str, count: int) -> str:
    return f"{sentence} {''.join(f'[{number}]' for number in range(1, count + 1))}"


def real(folder: Path) -> dict[str, float]:
    chance = random.Random(7)
    right, wrong, without = [], [], []
    for sentence, passages in _answers(folder):
        without.append(_cite(sentence, passages))
        right.append(_suspected(_cited(sentence, len(passages)), passages))
        if right[-1]:
            continue
        for found in re.finditer(r"(?<![\w.])\d+(?![\w.]*\w)|(?<=[a-z] )[A-Z][a-z]{3,}(?= [a-z])", sentence):
            changed = str(int(found.group()) + chance.randint(301, 999)) if found.group().isdigit() else "Vikmund"
            altered = sentence[: found.start()] + changed + sentence[found.end() :]
            wrong.append(_suspected(_cited(altered, len(passages)), passages))
    matched = [citations for citations in without if citations]
    return {
        "citation_false_alarms_real": sum(right) / len(right),
        "citation_unsupported_caught_real": sum(wrong) / len(wrong),
        "citation_matched_real": len(matched) / len(without),
        "citation_false_alarms_matched_real": sum(bool(c[0]["unsupported"]) for c in matched) / len(matched),
    }


def report(figures: dict[str, float], path: Path) -> None:
    entries = {}
    for name, value in figures.items():
        goal = None if name.endswith("_real") else FALSE_ALARMS if "false" in name else GOAL
        ok = goal is None or (value <= goal if "false" in name else value >= goal)
        entries[name] = {"value": round(value, 4), "unit": "0..1", "goal": goal, "ok": ok}
        print(f"{name:42} {value:8.4f}  {'' if goal is None else f'goal {goal:g} ' + ('ok' if ok else 'MISSED')}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="folder with real questions, answers and passages")
    parser.add_argument("--json", type=Path, default=Path("build/bench/citations.json"))
    options = parser.parse_args()
    os.environ.update(session_services.session().environment())  # for settings; no server is started
    django.setup()
    figures = generated()
    if options.data is not None:
        nested = options.data / "code-retrieval"
        figures |= real(nested if nested.is_dir() else options.data)
    report(figures, options.json)


if __name__ == "__main__":
    main()
