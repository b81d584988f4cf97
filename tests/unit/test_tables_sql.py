# ruff: noqa: E501 - a question a line
"""The check of SQL: what people ask passes and says the same, what could reach anything else is refused."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from apps.files.tables.sql import MAX_CHARS, PLACE, BadSql, check

GOOD = """
select * from sales
select region, sum(revenue) as r from sales group by region order by r desc limit 3
select s.*, c.name from sales s join customers c on s.id = c.id
with m as (select date_trunc('month', date) as month, sum(revenue) r from sales group by 1) select *, r - lag(r) over (order by month) as d from m
select count(*), count(distinct region), avg(price), median(price), max_by(product, revenue), string_agg(product, ', ') from sales
select region, case when units > 5 then 'a' else 'b' end k from sales where product ilike '%x%' and date between date '2024-01-01' and '2024-02-01'
select strftime(date, '%Y-%m') m, quantile_cont(price, 0.5), round(avg(price),2) from sales group by all order by all
select * from (select region, units from sales) t where units > 3
select * exclude (note) from sales limit 5
select region from sales union all select name from customers
from sales select region
from sales
select year(date), month(date), extract(quarter from date) from sales
select region, row_number() over (partition by region order by revenue desc) rn from sales qualify rn <= 3
select cast(price as double) / nullif(units, 0) from sales
select price::int, try_cast(note as integer), regexp_extract(note, '[0-9]+') from sales
select sum(revenue) filter (where region='North') from sales
select distinct region from sales
select * from range(5) t(i)
select unnest([1,2,3])
select * from sales where region in (select name from customers)
select date + interval 1 day, date - interval '3' month, datediff('day', date, current_date) from sales
select list_transform([1,2], x -> x+1)
select "date", _row from sales where not (units is null) order by 2 nulls last offset 3
select approx_count_distinct(product), stddev(price), corr(price, revenue) from sales
select region, sum(revenue) from sales group by rollup(region)
with recursive t(n) as (select 1 union all select n+1 from t where n < 5) select * from t
select region || '-' || product from sales where region like 'N%'
select * from sales as s using sample 10
select coalesce(region, 'none'), concat(region, ' ', product), lower(region), length(product), replace(product,'a','b'), split_part(product,' ',2), substr(product, 1, 3) from sales
select count(*) from sales where date >= '2024-01-01'::date
select epoch(date), dayname(date), monthname(date), weekday(date) , last_day(date) from sales
select exists(select 1 from sales where units>3)
select date_part('year', date), greatest(1,2), least(units, 3), mode(region) from sales group by 1,2,3
select any_value(region), first(region), last(region), arg_max(product, revenue), bool_and(units>0), count_if(units>3), list(region) from sales
select percentile_cont(0.5) within group (order by price) from sales
select ntile(4) over (order by price), rank() over w, sum(units) over (order by date rows between 6 preceding and current row) from sales window w as (order by price)
select strptime(note, '%d/%m/%Y'), make_date(2024,1,1), try_strptime(note,'%Y') from sales
select * from sales limit 10 offset 5
""".strip().split("\n")  # one a line
BAD = """
select * from read_csv('/etc/passwd')
select * from '/etc/passwd'
select * from "/etc/passwd"
copy sales to '/tmp/x'
attach 'x.db'
install httpfs
load httpfs
set threads=1
pragma version
select getenv('HOME')
select read_text('/etc/passwd')
select * from glob('*')
select * from duckdb_settings()
select * from information_schema.tables
select * from pg_catalog.pg_class
insert into sales values (1)
update sales set a=1
delete from sales
drop table sales
create table x as select 1
select 1; select 2
select * from sales; drop table sales
call pragma_version()
explain select 1
describe sales
show tables
summarize sales
select current_setting('threads')
select nextval('x')
select * from query('select 1')
select * from query_table('sales')
select * from main.sales
select * from system.main.sales
select $1
select ? from sales
select * into x from sales
select * from sales limit (select 5)
select * from read_parquet(['/a'])
select * from sqlite_scan('a','b')
select * from other_file
export database 'x'
begin
vacuum
select set_config('a','b')
select pg_read_file('x')
select * from parquet_metadata('x')
with x as (delete from sales returning *) select * from x
select * from (copy sales to 'x')
checkpoint
use x
prepare a as select 1
select system.getenv('x')
select main.getenv('x')
from read_csv_auto('http://169.254.169.254/')
select json_serialize_sql('x')
select * from sales, lateral (select * from read_blob('x'))
select (select content from read_text('/etc/passwd'))
select write_log('x')
""".strip().split("\n")


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE sales AS SELECT i + 2 AS _row, i AS id, DATE '2024-01-01' + i::INT AS date, "
            "['North', 'South'][i % 2 + 1] AS region, 'Product ' || i AS product, i AS units, "
            "(i * 1.5)::DECIMAL(18,2) AS price, (i * 2.5)::DECIMAL(18,2) AS revenue, '01/02/2024' AS note "
            "FROM range(20) r(i)"
        )
        engine.execute("CREATE TABLE customers AS SELECT i + 2 AS _row, i AS id, 'North' AS name FROM range(3) r(i)")
        yield engine


@pytest.mark.parametrize("sql", GOOD)
def test_what_people_ask_runs(engine: duckdb.DuckDBPyConnection, sql: str) -> None:
    checked = check(sql, {"sales", "customers"}, max_rows=100)
    result = engine.execute(checked.sql)
    names = [column[0] for column in result.description]
    assert len(result.fetchall()) <= 100
    assert ("_row" in names) == (" _row" in sql)
    assert (names[-1] == PLACE) == checked.places


@pytest.mark.parametrize("sql", BAD)
def test_what_could_reach_anything_else_is_refused(sql: str) -> None:
    with pytest.raises(BadSql):
        check(sql, {"sales", "customers"}, max_rows=100)


def test_what_runs_is_what_was_understood() -> None:
    """Comments, semicolons and quotes are no way around: the text itself never runs."""
    checked = check("SELECT region /* x */ FROM sales -- ; DROP TABLE sales", {"sales"}, max_rows=10)
    assert checked.sql == "SELECT region, _row AS _row_of_the_sheet FROM sales LIMIT 11"


@pytest.mark.parametrize(
    ("sql", "limit"),
    [("SELECT * FROM sales", "LIMIT 11"), ("SELECT * FROM sales LIMIT 3", "LIMIT 3"),
     ("SELECT * FROM sales LIMIT 5000", "LIMIT 11"), ("SELECT 1 UNION SELECT 2", "LIMIT 11")],
)  # fmt: skip
def test_rows_are_limited(sql: str, limit: str) -> None:
    assert check(sql, {"sales"}, max_rows=10).sql.endswith(limit)


@pytest.mark.parametrize(
    ("sql", "places"),
    [
        ("SELECT region FROM sales", True),
        ("SELECT region FROM sales ORDER BY units LIMIT 2", True),
        ("SELECT region, sum(units) OVER () FROM sales", True),
        ("SELECT sum(units) FROM sales", False),
        ("SELECT DISTINCT region FROM sales", False),
        ("SELECT region FROM sales GROUP BY region", False),
        ("SELECT s.region FROM sales s JOIN customers c ON s.id = c.id", False),
        ("SELECT region FROM (SELECT region FROM sales)", False),
        ("SELECT region FROM sales UNION SELECT name FROM customers", False),
    ],
)
def test_places_are_told_where_rows_are_rows_of_a_table(sql: str, places: bool) -> None:
    checked = check(sql, {"sales", "customers"}, max_rows=10)
    assert (checked.places, checked.table) == (places, "sales" if places else "")


@pytest.mark.parametrize("nested", ["(", "f(", "[", "case when ", "abs("])
def test_depth_and_length_are_bounded(nested: str) -> None:
    for sql in (
        f"SELECT {nested * 2_000}",
        "SELECT " + "1+" * (MAX_CHARS // 2 - 10) + "1",
        "SELECT " + "x" * MAX_CHARS,
    ):
        with pytest.raises(BadSql):
            check(sql, {"sales"}, max_rows=10)


def test_a_name_of_a_with_is_no_way_to_the_engines_own_tables() -> None:
    for name in ("duckdb_settings", "pg_class", "sqlite_master"):
        with pytest.raises(BadSql):
            check(f"SELECT * FROM (WITH {name} AS (SELECT 1) SELECT 1), {name}", {"sales"}, max_rows=10)
