# ruff: noqa: S608 - the statements are made of constants
"""The ranking statements. Each starts from what the actor may see: no row outside it is ever ranked.

Every statement takes `organization`, `owner` and `files`; a file that is foreign, deleted or unknown simply
contributes nothing.
"""

from __future__ import annotations

from functools import lru_cache

from apps.files.indexing.lexical import CONFIGURATION

K1, B = 1.2, 0.75
MAX_LEXEMES = 48
MAX_SAMPLE = 1_000
MAX_OUTLINED = 20_000  # passages of whole files that are looked at
MAX_LISTED = 500  # page numbers that a search result names as not readable

_SCOPE = """
scope AS MATERIALIZED (
    SELECT id, name, page_count, state, error_message, notices FROM files_file
    WHERE organization_id = %(organization)s AND owner_id = %(owner)s AND id = ANY(%(files)s::uuid[])
        AND deleted_at IS NULL
)
"""

_MINE = """
    passage.organization_id = %(organization)s AND passage.owner_id = %(owner)s
    AND passage.file_id = ANY(ARRAY(SELECT id FROM scope))
"""

SIZE = f"""
WITH {_SCOPE}
SELECT count(*), EXISTS (
    SELECT FROM files_passage AS passage WHERE {_MINE} AND passage.embedding_version = ANY(%(asked)s)
)
FROM files_passage AS passage WHERE {_MINE}
"""

# Only looked at while what makes vectors is away.
UNASKED = f"""
WITH {_SCOPE}
SELECT EXISTS (SELECT FROM files_passage AS passage WHERE {_MINE} AND passage.embedding_version = ANY(%(unasked)s))
"""

# BM25 (Robertson and Zaragoza 2009, with Lucene's idf that cannot turn negative) over the scope's own statistics.
_KEYWORDS = f"""
mine AS MATERIALIZED (SELECT passage.id, passage.length FROM files_passage AS passage WHERE {_MINE}),
statistics AS MATERIALIZED (
    SELECT count(*)::float8 AS passages, greatest(coalesce(avg(length), 1), 1)::float8 AS length FROM mine
),
found AS MATERIALIZED (
    SELECT posting.passage_id, posting.tf, count(*) OVER (PARTITION BY posting.lexeme) AS passages
    FROM files_posting AS posting
    WHERE posting.organization_id = %(organization)s
        AND posting.lexeme = ANY(ARRAY(
            SELECT lexeme FROM unnest(to_tsvector('{CONFIGURATION}', %(question)s)) LIMIT {MAX_LEXEMES}
        ))
        AND posting.file_id = ANY(ARRAY(SELECT id FROM scope))
),
keywords AS (
    SELECT mine.id, sum(
        ln(1 + (statistics.passages - found.passages + 0.5) / (found.passages + 0.5))
        * found.tf * {K1 + 1} / (found.tf + {K1} * ({1 - B} + {B} * mine.length / statistics.length))
    ) AS score
    FROM found JOIN mine ON mine.id = found.passage_id CROSS JOIN statistics
    GROUP BY mine.id ORDER BY score DESC, mine.id LIMIT %(depth)s
)
"""

KEYWORD = f"""
WITH {_SCOPE}, {_KEYWORDS}
SELECT passage.id, passage.file_id, keywords.score, NULL::float8
FROM keywords JOIN files_passage AS passage ON passage.id = keywords.id
ORDER BY keywords.score DESC, passage.id
"""

# `+ 0` keeps the planner from the approximate index: in a small scope that would lose most of what it should find.
_EXACT = """
SELECT passage.id FROM files_passage AS passage
WHERE {mine} AND passage.embedding_version = %(version_{n})s
ORDER BY (passage.embedding <=> %(vector_{n})s::vector) + 0 LIMIT %(depth)s
"""

# The condition on the dimensions is that of the index (`indexing.nearest`).
_APPROXIMATE = """
SELECT passage.id FROM files_passage AS passage
WHERE {mine} AND passage.embedding_version = %(version_{n})s AND vector_dims(passage.embedding) = {dimensions}
ORDER BY passage.embedding::halfvec({dimensions}) <=> %(vector_{n})s::halfvec({dimensions}) LIMIT %(depth)s
"""

# In the order of their ids, which is that of the documents: of equal scores the first in a document comes first.
_FUSED = """
SELECT passage.id, passage.file_id, coalesce(keywords.score, 0), CASE passage.embedding_version {cosines} END,
    CASE passage.embedding_version {numbers} END
FROM (SELECT id FROM keywords UNION SELECT id FROM vectors) AS either
JOIN files_passage AS passage ON passage.id = either.id
LEFT JOIN keywords ON keywords.id = passage.id
ORDER BY passage.id
"""

_SPREAD = """
SELECT {n}, count(cosine), coalesce(avg(cosine), 0), coalesce(stddev_pop(cosine), 0) FROM (
    SELECT 1 - (passage.embedding <=> %(vector_{n})s::vector) AS cosine FROM files_passage AS passage
    WHERE {mine} AND passage.embedding_version = %(version_{n})s LIMIT {sample}
) AS sampled
"""


@lru_cache(maxsize=64)
def nearest(dimensions: tuple[int | None, ...]) -> str:
    """The `vectors` of each version of the scope: by index where a dimension is given, else each compared.

    Takes `version_<n>` and `vector_<n>` for each entry, and `depth`.
    """
    each = [
        (_EXACT if size is None else _APPROXIMATE).format(mine=_MINE, n=n, dimensions=size)
        for n, size in enumerate(dimensions)
    ]
    return f"vectors AS ({' UNION ALL '.join(f'({one})' for one in each)})"


@lru_cache(maxsize=64)
def hybrid(dimensions: tuple[int | None, ...]) -> str:
    """Rows of passage, file, BM25, cosine and which version that is of. As for `nearest`, with `question`."""
    numbers = range(len(dimensions))
    cosines = " ".join(f"WHEN %(version_{n})s THEN 1 - (passage.embedding <=> %(vector_{n})s::vector)" for n in numbers)
    fused = _FUSED.format(cosines=cosines, numbers=" ".join(f"WHEN %(version_{n})s THEN {n}" for n in numbers))
    return f"WITH {_SCOPE}, {_KEYWORDS}, {nearest(dimensions)} {fused}"


@lru_cache(maxsize=8)
def spreads(versions: int) -> str:
    """Number, count, mean and deviation of the cosines of a sample of the scope's passages, a row a version."""
    each = (f"({_SPREAD.format(mine=_MINE, n=n, sample=MAX_SAMPLE)})" for n in range(versions))
    return f"WITH {_SCOPE} {' UNION ALL '.join(each)}"


# With a filter, the index alone stops after the nearest few of everybody's: it must go on until enough are ours.
APPROXIMATE_SETTINGS = """
SET LOCAL hnsw.iterative_scan = relaxed_order;
SET LOCAL hnsw.ef_search = 200;
SET LOCAL hnsw.max_scan_tuples = 100000;
"""

_COLUMNS = """
passage.id, passage.file_id, scope.name, passage.page_number, passage.heading, passage.text, passage.boxes,
passage.locator, passage.source, passage.ordinal
"""

PASSAGES = f"""
WITH {_SCOPE}
SELECT {_COLUMNS} FROM files_passage AS passage JOIN scope ON scope.id = passage.file_id
WHERE {_MINE} AND passage.id = ANY(%(passages)s::uuid[])
"""

ON_PAGES = f"""
WITH {_SCOPE}, wanted AS (
    SELECT * FROM unnest(%(page_files)s::uuid[], %(page_numbers)s::int[]) AS page(file_id, number)
)
SELECT {_COLUMNS} FROM wanted
JOIN scope ON scope.id = wanted.file_id
JOIN files_passage AS passage ON passage.file_id = wanted.file_id AND passage.page_number = wanted.number
WHERE {_MINE}
ORDER BY array_position(%(files)s::uuid[], passage.file_id), passage.page_number, passage.ordinal
LIMIT %(limit)s
"""

# Without texts: where passages stand, of whole files.
OUTLINE = f"""
WITH {_SCOPE}
SELECT passage.id, passage.file_id, passage.page_number, passage.heading FROM files_passage AS passage
WHERE {_MINE}
ORDER BY array_position(%(files)s::uuid[], passage.file_id), passage.page_number, passage.ordinal
LIMIT {MAX_OUTLINED}
"""

# Every passage that has a word of the question, and how many of them it has.
WORDS = f"""
WITH {_SCOPE}, found AS (
    SELECT posting.passage_id, count(*) AS words FROM files_posting AS posting
    WHERE posting.organization_id = %(organization)s
        AND posting.lexeme = ANY(ARRAY(
            SELECT lexeme FROM unnest(to_tsvector('{CONFIGURATION}', %(question)s)) LIMIT {MAX_LEXEMES}
        ))
        AND posting.file_id = ANY(ARRAY(SELECT id FROM scope))
    GROUP BY posting.passage_id
)
SELECT passage.id, passage.file_id, passage.page_number, found.words
FROM found JOIN files_passage AS passage ON passage.id = found.passage_id
WHERE {_MINE}
ORDER BY array_position(%(files)s::uuid[], passage.file_id), passage.page_number, passage.ordinal
LIMIT {MAX_OUTLINED}
"""

SUMMARIES = f"""
WITH {_SCOPE}
SELECT section.file_id, section.title, section.first_page, section.last_page, section.text, section.pages
FROM files_summary AS summary
JOIN scope ON scope.id = summary.file_id
JOIN files_summary_section AS section ON section.file_id = summary.file_id
WHERE summary.organization_id = %(organization)s AND summary.state = 'ready'
    AND section.level = 0 AND section.text <> ''
ORDER BY array_position(%(files)s::uuid[], section.file_id), section.ordinal
"""

# A page counts as readable once its keywords are in the index; a page without a row was not reached yet. A file is
# ready when all its pages are.
FILES = f"""
WITH {_SCOPE}
SELECT scope.id, scope.name, scope.page_count, scope.notices,
    EXISTS (SELECT FROM files_table WHERE file_id = scope.id), scope.state, scope.error_message,
    ARRAY(
        SELECT wanted FROM generate_series(1, coalesce(scope.page_count, 0)) AS wanted
        WHERE scope.state <> 'ready' AND NOT EXISTS (
            SELECT FROM files_page AS page WHERE page.file_id = scope.id AND page.number = wanted
                AND (page.state = 'failed' OR (page.state = 'ready' AND page.indexed_at IS NOT NULL))
        )
        ORDER BY wanted LIMIT {MAX_LISTED}
    ),
    ARRAY(
        SELECT page.number FROM files_page AS page
        WHERE scope.state <> 'ready' AND page.file_id = scope.id AND page.state = 'failed'
        ORDER BY page.number LIMIT {MAX_LISTED}
    )
FROM scope ORDER BY array_position(%(files)s::uuid[], scope.id)
"""
