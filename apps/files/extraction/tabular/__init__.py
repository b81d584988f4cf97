"""Tables for SQL: found in sheets, delimited text and documents, typed, kept as Parquet. The child's half.

`read` finds and writes them, `query` answers one question. Both run in the sandboxed child; who may ask what, and
the check of the SQL, are `apps.files.tables`' part.
"""
