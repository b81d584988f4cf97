"""What a sentence that cites states, looked up in the passages that it cites."""

from __future__ import annotations

import pytest

from apps.files.retrieval.citations import cite
from tests.factories.claims import KINDS, Claim, ClaimKind, claims, matched_claims
from tests.factories.passages import make_hit as hit

SOURCES = [
    hit(
        "On 3 March 2021 the station at Cordenfal recorded a level of 412 centimetres. Anna Keller of the World Health "
        'Organization said: "We were not ready for this flood." The damage was $1,234,567, or 3.5 million locally.'
    ),
    hit("Jonas Weber paid twenty-five people in June. The share was 14.2 percent. Three sensors failed in Germany."),
]


@pytest.mark.parametrize(
    "sentence",
    [
        "The level was 412 cm on March 3, 2021 [1].",
        "It was measured on 2021-03-03 [1], or 03/03/2021. [1]",
        "\u201cwe were NOT ready\u201d, Keller said [1].",
        'She said "We were not [...] this flood." [1]',
        "Dr. Anna Keller of the WHO was there [1].",
        "The damage was 1.234.567 or 3,500,000 [1].",
        "Damage of 1\u202f234\u202f567 dollars [1].",
        "Weber paid 25 people, about 14 percent [2].",
        "There were two reasons: three sensors failed in German towns [2].",
        "Jonas Weber and Anna Keller met in June [1][2].",
        "See page 1 of report.pdf [1].",
        "1. **Weber** paid them [2]",
        "Nothing here is cited: 99 people in Oslo.",
        "`limit = 99` is set [1].",
        "According to [1], nobody was ready.",
    ],
)
def test_what_the_source_says_in_another_form_is_supported(sentence: str) -> None:
    assert all(item["unsupported"] == [] for item in cite(sentence, SOURCES))


@pytest.mark.parametrize(
    ("sentence", "missing"),
    [
        ("The level was 421 cm [1].", ["421"]),
        ("It was on March 9, 2021. [1]", ["March 9, 2021"]),
        ("It was in April 2021 [1].", ["April 2021"]),
        ('"We were ready for this flood", she said [1].', ['"We were ready for this flood"']),
        ("Then Jonas Keller spoke [1].", ["Jonas Keller"]),
        ("The damage was 3.5 billion [1].", ["3.5 billion"]),
        ("Weber paid twenty-six people [2].", ["twenty-six"]),
        ("All five sensors failed [2].", ["five"]),
        ("Weber was there [1].", ["Weber"]),
        ("Ingrid Novotny paid them in June [2].", ["Ingrid Novotny"]),
        ("It rose by 7 to 8 and 9, then 10, 11 and 13 [1].", ["7", "8", "9", "10", "11"]),
    ],
)
def test_what_the_source_does_not_say_is_named(sentence: str, missing: list[str]) -> None:
    (citation,) = cite(sentence, SOURCES)
    assert citation["unsupported"] == missing


def test_a_wrong_sentence_marks_the_source_it_cites_and_no_other() -> None:
    found = cite("The level was 412 cm [1]. Weber paid 99 people. [2] It failed in June 2020 [2].", SOURCES)
    assert [(item["n"], item["unsupported"]) for item in found] == [(1, []), (2, ["99", "June 2020"])]


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_claims_are_noticed_and_right_ones_are_not(kind: ClaimKind) -> None:
    def suspected(claim: Claim) -> bool:
        return any(item["unsupported"] for item in cite(claim.answer, [hit(text) for text in claim.passages]))

    assert sum(map(suspected, claims(kind, 150, true=False, seed=3))) >= 147
    assert sum(map(suspected, claims(kind, 150, true=True, seed=3))) <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_answers_without_marks_are_held_to_what_they_match(kind: ClaimKind) -> None:
    def free_of_doubt(claim: Claim) -> list[int]:
        found = cite(claim.answer, [hit(text) for text in claim.passages])
        assert all(item["attributed"] for item in found)
        return [item["n"] for item in found if not item["unsupported"]]

    assert sum(free_of_doubt(claim) == [] for claim in matched_claims(kind, 150, true=False, seed=3)) >= 149
    assert sum(free_of_doubt(claim) == [claim.number] for claim in matched_claims(kind, 150, true=True, seed=3)) >= 148


@pytest.mark.parametrize(
    "text", ['"' * 9_000, "1 234 " * 3_000, "Aa " * 5_000, "one hundred and " * 2_000, "[1]" * 4_000]
)
def test_strange_answers_take_no_time(text: str) -> None:
    import time

    started = time.process_time()
    cite(f"{text} [1].", SOURCES)
    cite(text.replace("[1]", "Anna Keller of the World Health Organization said it. "), SOURCES)
    assert time.process_time() - started < 1
