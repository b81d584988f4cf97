"""Questions in SQL over the tables of files: who may ask what, the check of the SQL, the answer with its places.

What tables are is found by `apps.files.extraction.tabular` and published by `apps.files.pipeline.tabling`.
"""
