"""Writes: each function is one operation, owns its transaction and takes keyword arguments."""
