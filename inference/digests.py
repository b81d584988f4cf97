"""What tells weights and tokenizers apart: digests of what is in their files.

Responsible for: reading little of much, so that a digest of hundreds of gigabytes takes a second. Leaves to `weights`
whose they are, to `tokens` the same question to a server whose files are elsewhere, and to `continuation` what follows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import orjson

_WEIGHTS = frozenset({".safetensors", ".bin", ".pt", ".gguf"})
# What says which id stands for which text: the first, or all of the others. Templates do not: who continues by ids is
# given no messages.
_TOKENIZER = "tokenizer.json"
_OLDER = ("tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "merges.txt", "added_tokens.json")
# Facts about how the folder was written, which may differ where weights do not.
_NO_CONTENT = frozenset({"_name_or_path", "transformers_version"})
_SAMPLES, _SAMPLE, _HEAD = 256, 1 << 16, 1 << 20


def tokenizer_digest(folder: Path) -> str:
    """Of all bytes of the tokenizer's files; empty where there are none. OSError."""
    names = (_TOKENIZER,) if (folder / _TOKENIZER).is_file() else _OLDER
    files = [folder / name for name in names if (folder / name).is_file()]
    if not files:
        return ""
    found = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            found.update(f"{file.name}\0".encode() + hashlib.file_digest(handle, "sha256").digest())
    return found.hexdigest()


def weights_digest(folder: Path) -> str:
    """Of the configuration, the names, sizes and heads of all files of weights, and 256 samples of 64 kB evenly through
    their bytes: at most 16 MB, and one more a file. OSError.

    Other training changes nearly every byte, so it is seen. A change of a few tensors that leaves names and sizes alone
    may not be.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix in _WEIGHTS and path.is_file())
    sizes = [file.stat().st_size for file in files]
    found = hashlib.sha256(_configuration(folder))
    for file, size, places in zip(files, sizes, _places(sizes), strict=True):
        found.update(f"\0{file.name}\0{size}\0".encode())
        with file.open("rb") as handle:
            for part in _parts(handle, places):
                found.update(part)
    return found.hexdigest()


def _configuration(folder: Path) -> bytes:
    raw = (folder / "config.json").read_bytes()
    try:
        told = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw
    if not isinstance(told, dict):
        return raw
    return orjson.dumps({k: v for k, v in told.items() if k not in _NO_CONTENT}, option=orjson.OPT_SORT_KEYS)


def _places(sizes: Sequence[int]) -> list[list[int]]:
    """Where to sample each file, evenly through all of them together."""
    step = max(_SAMPLE, sum(sizes) // _SAMPLES)
    places, begins = [], 0
    for size in sizes:
        first = -(-begins // step) * step
        places.append([place - begins for place in range(first, begins + size, step)])
        begins += size
    return places


def _parts(handle: BinaryIO, places: Sequence[int]) -> Iterator[bytes]:
    """The head, in which safetensors name their tensors, and the samples."""
    yield handle.read(_HEAD)
    for place in places:
        handle.seek(place)
        yield handle.read(_SAMPLE)
