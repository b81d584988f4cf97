"""Tables of files through the API: found when a file is read, listed, paged, asked in SQL, removed with it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from apps.files.indexing import index_page
from apps.files.models import File, Page, Passage, Table
from apps.files.pipeline import removal
from apps.files.pipeline.tabling import key
from apps.files.retrieval import search_passages
from apps.files.retrieval.context import where
from apps.files.storage import storage
from apps.files.types import Locator
from tests.factories import formats
from tests.factories.files import Caller, drain, object_store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def caller(tmp_path: Path) -> Iterator[Caller]:
    with object_store(tmp_path) as base:
        yield Caller(base)


def delimited(rows: list[list[object]], delimiter: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode()


def sales(count: int = 60) -> list[list[object]]:
    regions = ("North", "South", "East")
    rows: list[list[object]] = [["Order no.", "Ordered on", "Region", "Revenue (EUR)"]]
    rows += [[n, f"2024-{n % 12 + 1:02}-15", regions[n % 3], f"{n * 1.25:.2f}"] for n in range(1, count + 1)]
    return rows


def ask(caller: Caller, file: dict[str, Any], sql: str) -> Any:
    return caller.post(f"/{file['id']}/query", {"sql": sql})


def answer(caller: Caller, file: dict[str, Any], sql: str) -> dict[str, Any]:
    said = ask(caller, file, sql)
    assert said.status_code == 200, said.content
    found: dict[str, Any] = said.json()
    return found


def test_a_csv_is_a_table_that_answers(caller: Caller) -> None:
    file = caller.ingest("Sales 2024.csv", delimited(sales()))
    assert (file["state"], file["notices"]) == ("ready", [])
    (table,) = caller.get(f"/{file['id']}/tables").json()["results"]
    assert (table["name"], table["rows"], table["header_row"], table["first_row"]) == ("sales_2024", 60, 1, 2)
    assert [(column["name"], column["type"]) for column in table["columns"]] == [
        ("order_no", "integer"), ("ordered_on", "date"), ("region", "text"), ("revenue_eur", "decimal"),
    ]  # fmt: skip
    assert table["columns"][3]["label"] == "Revenue (EUR)"
    found = answer(caller, file, "SELECT region, sum(revenue_eur) AS total FROM sales_2024 GROUP BY region ORDER BY 1")
    assert found["rows"] == [["East", 762.5], ["North", 787.5], ["South", 737.5]]
    assert (found["row_numbers"], found["truncated"]) == (None, False)
    assert found["sources"][0]["name"] == "sales_2024"


def test_rows_have_their_places_in_the_sheet(caller: Caller) -> None:
    rows: list[list[object]] = [
        ["Depths of the survey"],
        [],
        ["Site", "Depth"],
        ["North", 4.2],
        ["South", 7.5],
        ["West", 1.25],
    ]
    file = caller.ingest("a.xlsx", formats.workbook({"Survey": rows}))
    (table,) = caller.get(f"/{file['id']}/tables").json()["results"]
    assert (table["sheet"], table["name"], table["first_row"], table["last_row"]) == ("Survey", "survey", 4, 6)
    found = answer(caller, file, "SELECT * FROM survey WHERE depth > 2 ORDER BY depth DESC")
    assert found["columns"] == [{"name": "site", "type": "VARCHAR"}, {"name": "depth", "type": "DECIMAL(18,2)"}]
    assert (found["rows"], found["row_numbers"]) == ([["South", 7.5], ["North", 4.2]], [5, 4])
    assert found["sources"][0]["place"] == "sheet Survey, rows 4 to 6"
    assert answer(caller, file, "SELECT _row FROM survey WHERE site = 'West'")["rows"] == [[6]]


def test_rows_are_read_in_pages(caller: Caller) -> None:
    file = caller.ingest("a.csv", delimited(sales(250)))
    page = caller.get(f"/{file['id']}/tables/1?offset=100&limit=50").json()
    assert (len(page["rows"]), page["rows"][0][0], page["row_numbers"][0]) == (50, 101, 102)
    assert caller.get(f"/{file['id']}/tables/1?offset=240").json()["rows"][-1][0] == 250
    assert caller.get(f"/{file['id']}/tables/2").status_code == 404


def test_wrong_sql_says_what_is_wrong(caller: Caller) -> None:
    file = caller.ingest("a.csv", delimited(sales()))
    for sql, code, text in (
        ("SELECT regoin FROM a", "invalid", "There is no column regoin. Did you mean region?"),
        ('SELECT "Revenue (EUR)" FROM a', "invalid", "There is no column Revenue (EUR). Did you mean revenue_eur?"),
        ("SELECT * FROM b", "refused", "There is no table b. The tables are: a."),
        ("DELETE FROM a", "refused", "Only SELECT can be run: files are never changed."),
        ("SELECT * FROM read_csv('/etc/passwd')", "refused", "cannot be used"),
        ("SELEC 1", "refused", "cannot be understood"),
        ("SELECT sum(region) FROM a", "invalid", "sum(VARCHAR)"),
    ):
        said = ask(caller, file, sql)
        assert (said.status_code, said.json()["code"], said.json()["reason"]) == (422, "query_failed", code), sql
        assert text in said.json()["detail"], (sql, said.json())
    assert ask(caller, file, "").status_code == 422


def test_tables_of_others_and_of_unknown_files_are_not_there(caller: Caller) -> None:
    file = caller.ingest("a.csv", delimited(sales()))
    other = Caller()
    for path in (f"/{file['id']}/tables", f"/{file['id']}/tables/1"):
        assert other.get(path).status_code == 404
    mine = ask(other, file, "SELECT * FROM a")
    unknown = ask(other, {"id": UUID(int=1)}, "SELECT * FROM a")
    assert mine.status_code == unknown.status_code == 404
    assert mine.json()["detail"] == unknown.json()["detail"]


def test_sql_reaches_no_other_files_rows(caller: Caller, tmp_path: Path) -> None:
    file = caller.ingest("a.csv", delimited(sales()))
    secret = caller.ingest("secret.csv", delimited([["word", "n"], ["sesame", 1], ["open", 2]]))
    path = next(tmp_path.rglob(f"*{secret['id']}*/tables/1.parquet"))
    for sql in (
        "SELECT * FROM secret", f"SELECT * FROM '{path}'", f"SELECT * FROM read_parquet('{path}')",
        f'SELECT * FROM "{path}"',
    ):  # fmt: skip
        assert ask(caller, file, sql).status_code == 422, sql


def test_a_table_is_found_by_what_its_card_says(caller: Caller) -> None:
    file = caller.ingest("a.xlsx", formats.workbook({"Harbour dues": sales()}))
    found = search_passages(caller.actor, file_ids=[UUID(file["id"])], query="harbour dues revenue total by region")
    (card,) = [hit for hit in found.hits if hit.table]
    assert card.table == 1
    assert "Table harbour_dues (sheet Harbour dues, rows 2 to 61): 60 rows, 4 columns." in card.text
    assert '- revenue_eur "Revenue (EUR)": decimal, 1.25 to 75.00' in card.text
    assert "- region: text, such as East; North; South" in card.text


def test_a_long_table_of_a_document_is_one_too(caller: Caller) -> None:
    page = "<table><tr><th>City</th><th>People</th></tr>{}</table>"
    rows = "".join(f"<tr><td>City {n}</td><td>{n * 1000}</td></tr>" for n in range(1, 301))
    small = page.format("<tr><td>Ulm</td><td>126,000</td></tr>")
    file = caller.ingest("a.html", f"<h1>Cities</h1>{page.format(rows)}<h1>One</h1>{small}".encode())
    (table,) = caller.get(f"/{file['id']}/tables").json()["results"]
    assert (table["name"], table["rows"], table["page"]) == ("cities", 300, 1)
    assert answer(caller, file, "SELECT sum(people) FROM cities")["rows"] == [[45_150_000]]


def test_a_file_without_tables_has_none(caller: Caller) -> None:
    file = caller.ingest("a.md", b"# Title\n\nWords.")
    assert caller.get(f"/{file['id']}/tables").json() == {"results": []}
    said = ask(caller, file, "SELECT * FROM a")
    assert "The file has no tables." in said.json()["detail"]


def test_deleting_removes_tables_and_their_objects(caller: Caller) -> None:
    made = caller.ingest("a.csv", delimited(sales()))
    file = File.objects.get(id=made["id"])
    assert storage().size(key(file, 1))
    caller.delete(f"/{file.id}")
    assert {"tables", "objects"} <= set(removal.leftovers(file.id))
    removal.purge(file.id)
    assert removal.leftovers(file.id) == {}
    assert not Table.objects.exists()
    assert not Passage.objects.exists()


def test_the_same_content_again_has_tables_of_its_own(caller: Caller) -> None:
    first = caller.ingest("a.csv", delimited(sales()))
    second = caller.ingest("b.csv", delimited(sales()))
    assert File.objects.get(id=second["id"]).same_as_id == UUID(first["id"])
    caller.delete(f"/{first['id']}")
    removal.purge(UUID(first["id"]))
    assert answer(caller, second, "SELECT count(*) FROM a")["rows"] == [[60]]


# Passages of sheets


def test_a_passage_of_a_sheet_has_its_rows_also_as_a_copy_and_made_again(caller: Caller) -> None:
    rows: list[list[object]] = [[None], [None], ["Site", "Remark"]]
    rows += [[f"site{number}", "measured twice and written down"] for number in range(4, 200)]
    body = formats.workbook({"Notes": [["nothing here"]], "Survey": rows})
    first = caller.ingest("a.xlsx", body)
    second = caller.ingest("b.xlsx", body)
    page = Page.objects.filter(file_id=second["id"], text__contains="site150 ").get()
    numbers: list[int] = []
    for file_id in (first["id"], second["id"]):
        hits = search_passages(caller.actor, file_ids=[UUID(file_id)], query="site150").hits
        hit = next(hit for hit in hits if "site150 " in hit.text)
        numbers = [int(found) for found in re.findall(r"site(\d+)", hit.text)]
        assert hit.locator == Locator(sheet="Survey", rows=(numbers[0], numbers[-1]))
    index_page(page.id)
    (again,) = Passage.objects.filter(file_id=second["id"], page_number=page.number, text__contains="site150 ")
    assert again.locator == {"sheet": "Survey", "rows": [numbers[0], numbers[-1]]}
    read = caller.get(f"/{second['id']}/pages/{page.number}").json()
    lines = dict(zip(read["text"].split("\n"), read["row_numbers"], strict=True))
    assert lines["site150 | measured twice and written down"] == 150
    first_page = caller.get(f"/{second['id']}/pages/1").json()
    assert (first_page["text"], first_page["row_numbers"]) == ("Notes\n\nnothing here", [None, None, 1])


def test_passages_of_before_rows_were_kept_are_found_and_cited_by_their_page(caller: Caller) -> None:
    file = caller.ingest("a.csv", b"site,remark\nNorth,dry\nSouth,wet\n")
    Passage.objects.filter(file_id=file["id"]).update(locator=None)
    hit = next(
        hit for hit in search_passages(caller.actor, file_ids=[UUID(file["id"])], query="north").hits if hit.page
    )
    assert (hit.locator, where(hit)) == (None, "page 1")


def test_what_cannot_become_tables_is_read_all_the_same(caller: Caller) -> None:
    body = b'a,b\n1,2\n"unterminated ' + b"x" * (2 << 20)
    file = caller.upload("a.csv", body)
    drain(UUID(file["id"]))
    read = caller.file(file["id"])
    assert read["state"] in ("ready", "failed")
    if read["state"] == "ready":
        assert [notice["code"] for notice in read["notices"]] == ["tables_unread"]
