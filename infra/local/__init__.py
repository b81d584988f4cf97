"""Parley on one machine: installs what is missing, starts every piece, watches and stops it.

Standard library only: this package runs before any environment exists. Start it with `python3 -m infra.local`.
"""
