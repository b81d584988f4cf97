"""What tables cost: from the end of the upload until a table answers SQL, and what a question takes then.

    python -m tests.bench.tables [--csv-rows 500000] [--xlsx-rows 100000]

Real processes: one web, one Celery worker a queue with the sandboxed children they start, Postgres and Valkey. Pages,
keywords and vectors of the same files follow behind and are not counted. Writes build/bench/tables.json.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import statistics
import time
import zipfile
from collections.abc import Iterator
from typing import Any

from infra.local.layout import REPOSITORY
from tests.bench.files import Cost, Figures, Product, figure, measured
from tests.services import session
from tests.stack import Stack

REPORT = REPOSITORY / "build" / "bench" / "tables.json"
PATIENCE_S = 120.0
QUESTIONS = 20
HEADER = ("id", "date", "region", "product", "units", "price", "revenue", "note")
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def rows(count: int) -> Iterator[tuple[Any, ...]]:
    source = random.Random(4)
    for number in range(1, count + 1):
        yield (
            number, f"2024-{source.randint(1, 12):02}-{source.randint(1, 28):02}",
            source.choice(("North", "South", "East", "West")), f"Product {source.randint(1, 400)}",
            source.randint(1, 90), round(source.uniform(1, 500), 2), round(source.uniform(1, 50_000), 2),
            f"note {source.randint(1, 10**6)}",
        )  # fmt: skip


def delimited(count: int) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(HEADER)
    writer.writerows(rows(count))
    return text.getvalue().encode()


def _cell(value: object) -> str:
    return f'<c t="inlineStr"><is><t>{value}</t></is></c>' if isinstance(value, str) else f"<c><v>{value}</v></c>"


def workbook(count: int) -> bytes:
    lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in (HEADER, *rows(count)))
    members = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r0" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_OFFICE}/worksheet" Target="worksheets/s1.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets><sheet name="Sales" sheetId="1" '
        'r:id="r1"/></sheets></workbook>',
        "xl/worksheets/s1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>',
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return packed.getvalue()


def until_it_answers(product: Product, name: str, body: bytes, count: int) -> tuple[str, Cost]:
    """The file, and what it cost from the end of its upload until its table is listed and counts its rows."""
    with measured(product.pids) as cost:
        file_id = product.upload(name, body)
        uploaded, deadline = time.monotonic(), time.monotonic() + PATIENCE_S
        while not (tables := product.get(f"/api/files/{file_id}/tables")["results"]):
            assert time.monotonic() < deadline, product.get(f"/api/files/{file_id}")
            time.sleep(0.1)
        ready = time.monotonic() - uploaded
    cost.wall_s = ready
    assert [table["rows"] for table in tables] == [count]
    (answer,) = ask(product, file_id, f"SELECT count(*), count(DISTINCT id), max(id) FROM {tables[0]['name']}")
    assert answer == [count, count, count], answer
    print(f"  {name}: {cost}")
    return file_id, cost


def ask(product: Product, file_id: str, sql: str) -> list[list[Any]]:
    found: list[list[Any]] = product.post(f"/api/files/{file_id}/query", {"sql": sql})["rows"]
    return found


def question_ms(product: Product, file_id: str) -> float:
    table = product.get(f"/api/files/{file_id}/tables")["results"][0]["name"]
    sql = f"SELECT region, year(date) AS y, sum(revenue) FROM {table} GROUP BY ALL ORDER BY ALL"
    taken = []
    for _ in range(QUESTIONS):
        begun = time.monotonic()
        assert len(ask(product, file_id, sql)) == 4
        taken.append((time.monotonic() - begun) * 1000)
    return statistics.median(taken)


def measure(csv_rows: int, xlsx_rows: int) -> Figures:
    text, book = delimited(csv_rows), workbook(xlsx_rows)
    with Stack(session(), webs=1, runners=0, replicas=0) as stack:
        product = Product(stack)
        until_it_answers(product, "warm-up.csv", delimited(100), 100)
        sheet, book_cost = until_it_answers(product, "sales.xlsx", book, xlsx_rows)
        product.wait_until_searchable(sheet)
        file, text_cost = until_it_answers(product, "sales.csv", text, csv_rows)
        product.wait_until_searchable(file)
        asked = question_ms(product, file)
    return {
        "csv_500k_rows_s": figure(text_cost.wall_s, "s", 5),
        "csv_500k_rows_cpu_s": figure(text_cost.total, "CPU-s"),
        "xlsx_100k_rows_cpu_s": figure(book_cost.total, "CPU-s", 6),
        "xlsx_100k_rows_s": figure(book_cost.wall_s, "s"),
        "table_query_ms": figure(asked, "ms"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv-rows", type=int, default=500_000)
    parser.add_argument("--xlsx-rows", type=int, default=100_000)
    options = parser.parse_args()
    figures = measure(options.csv_rows, options.xlsx_rows)
    for name, entry in figures.items():
        goal = "" if entry["goal"] is None else f"  goal {entry['goal']}  {'ok' if entry['ok'] else 'MISSED'}"
        print(f"{name:32} {entry['value']:>9} {entry['unit']:12}{goal}")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(entry["ok"] for entry in figures.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
