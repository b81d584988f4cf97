"""How many tokens a chat is, without asking the replica each time.

Responsible for: the local tokenizer where its file is at hand, what the chat template adds (measured once against
the replica, since templates differ), and a high estimate where neither is there. Leaves the asking to the engine.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from inference.protocol import ChatMessage, InferenceError

log = logging.getLogger(__name__)

RemoteCount = Callable[[Sequence[ChatMessage]], Awaitable[int]]

_BYTES_PER_TOKEN = 3
_IN_THREAD_CHARS = 20_000
_UNASKED_BASE, _UNASKED_EACH = 40, 6


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens that the template adds: once, once where the chat has no system message, and for each message."""

    base: int
    without_system: int
    each: int


_UNMEASURED = Overhead(4, _UNASKED_BASE, _UNASKED_EACH)


class TokenCounter:
    def __init__(self, tokenizer_file: Path | None) -> None:
        self._file = tokenizer_file
        self._tokenizer: Tokenizer | None = None
        self._overhead: Overhead | None = None
        self._loading = asyncio.Lock()

    async def count(self, messages: Sequence[ChatMessage], remote: RemoteCount | None) -> int:
        """Prompt tokens, template included. Exact with a tokenizer and a replica that can be asked once."""
        if await self._load() is None:
            return await self._count_without_file(messages, remote)
        overhead = await self._measure(remote)
        plain = await self._plain([m.content for m in messages])
        has_system = any(m.role == "system" for m in messages)
        return (
            sum(plain) + overhead.each * len(messages) + overhead.base + (0 if has_system else overhead.without_system)
        )

    async def _count_without_file(self, messages: Sequence[ChatMessage], remote: RemoteCount | None) -> int:
        if remote is not None:
            try:
                return await remote(messages)
            except InferenceError as error:
                log.info("the replica does not count tokens: %s", error)
        size = sum(len(m.content.encode()) for m in messages)
        return -(-size // _BYTES_PER_TOKEN) + _UNASKED_EACH * len(messages) + _UNASKED_BASE

    async def decode(self, ids: Sequence[int]) -> str | None:
        """Text of output ids without special tokens; None without a tokenizer."""
        tokenizer = await self._load()
        return None if tokenizer is None else str(tokenizer.decode(list(ids), skip_special_tokens=True))

    async def _load(self) -> Tokenizer | None:
        if self._tokenizer is None and self._file is not None:
            async with self._loading:
                if self._tokenizer is None and self._file is not None:
                    self._tokenizer = await asyncio.to_thread(_read_tokenizer, self._file)
                    if self._tokenizer is None:
                        self._file = None
        return self._tokenizer

    async def _plain(self, texts: list[str]) -> list[int]:
        """Long texts are counted in a thread: the tokenizer lets go of the interpreter, the loop goes on."""
        if sum(map(len, texts)) > _IN_THREAD_CHARS:
            return await asyncio.to_thread(self._plain_now, texts)
        return self._plain_now(texts)

    def _plain_now(self, texts: list[str]) -> list[int]:
        assert self._tokenizer is not None
        return [len(e.ids) for e in self._tokenizer.encode_batch(texts, add_special_tokens=False)]

    async def _measure(self, remote: RemoteCount | None) -> Overhead:
        """Three small questions whose differences give the template's share."""
        if self._overhead is None and remote is not None:
            user, system = ChatMessage("user", "a"), ChatMessage("system", "a")
            try:
                one = await remote((user,))
                with_system = await remote((system, user))
                longer = await remote((system, user, ChatMessage("assistant", "a"), user))
            except InferenceError as error:
                log.info("the chat template could not be measured: %s", error)
                return _UNMEASURED
            letter = self._plain_now(["a"])[0]
            each = -(-(longer - with_system) // 2) - letter
            base = with_system - 2 * (each + letter)
            self._overhead = Overhead(base, one - (base + each + letter), each)
        return self._overhead or _UNMEASURED


def _read_tokenizer(path: Path) -> Tokenizer | None:
    try:
        return Tokenizer.from_buffer(path.read_bytes())
    except (OSError, ValueError) as error:
        log.warning("tokenizer %s cannot be read: %s", path.name, error)
        return None
