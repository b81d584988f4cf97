"""How many tokens a chat is, without asking the replica each time.

Responsible for: the local tokenizer where its file is at hand, what the chat template adds (measured once against
the replica, since templates differ), and a high estimate where neither is there; and the text by which tokenizers are
told apart. Leaves the asking to the engine.
"""

from __future__ import annotations

import asyncio
import hashlib
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
SPECIMEN = """\
A replica that can't read another's ids won't notice: 1234567890 tokens, 3.14159 of them wrong.  Two  spaces,\ta tab,
Größe, garçon, mañana, příliš, İzmir. Наша проверка слов. Η δοκιμή των λέξεων. בדיקת מילים. اختبار الكلمات.
\u0936\u092c\u094d\u0926 \u0e04\u0e33 \u8a5e\u8a9e\u306e\u8a66\u9a13 \ub2e8\uc5b4 \U0001f642\u200d\u2b1b \u2211 \u00bd
def add(self, x: int) -> int:\n        return {"total": [self.total + x, null]}  # </div> && || != === a?b=c\r\n\r\n
internationalization tokenizations HTTPServerError snake_case_name zzzzzzzzzzzzzzzz ------------ ................
<s></s><pad><unk><|im_start|><|im_end|><|endoftext|><|eot_id|><|end|><think></think><tool_call></tool_call>[INST][/INST]
"""
"""Text of which every tokenizer makes other ids: words, numbers, spaces, scripts, code, names of special tokens."""


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens that the template adds: to a chat of one question, with and without a system message, and for each
    further pair of messages (their roles may differ in length, so one message alone cannot be told exactly)."""

    bare: int
    with_system: int
    pair: int

    def of(self, messages: Sequence[ChatMessage]) -> int:
        spoken = sum(m.role != "system" for m in messages)
        systems = len(messages) - spoken
        more = max(0, spoken - 1) + max(0, systems - 1)
        return (self.with_system if systems else self.bare) + -(-more * self.pair // 2)


_UNMEASURED = Overhead(_UNASKED_BASE, _UNASKED_BASE, 2 * _UNASKED_EACH)


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
        return sum(await self._plain([m.spoken for m in messages])) + overhead.of(messages)

    async def _count_without_file(self, messages: Sequence[ChatMessage], remote: RemoteCount | None) -> int:
        if remote is not None:
            try:
                return await remote(messages)
            except InferenceError as error:
                log.info("the replica does not count tokens: %s", error)
        size = sum(len(m.spoken.encode()) for m in messages)
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
        """Three small questions whose differences give the template's share. A template that has no place for a
        system message answers the second one with an error."""
        if self._overhead is None and remote is not None:
            user, reply = ChatMessage("user", "a"), ChatMessage("assistant", "a")
            letter = self._plain_now(["a"])[0]
            try:
                bare = await remote((user,)) - letter
                pair = await remote((user, reply, user)) - bare - 3 * letter
            except InferenceError as error:
                log.info("the chat template could not be measured: %s", error)
                return _UNMEASURED
            try:
                with_system = await remote((ChatMessage("system", "a"), user)) - 2 * letter
            except InferenceError:
                with_system = bare + pair
            self._overhead = Overhead(bare, with_system, pair)
        return self._overhead or _UNMEASURED


def digest_of_ids(ids: Sequence[int]) -> str:
    """What a server made of SPECIMEN, as a digest of its tokenizer; comparable with others of this kind alone."""
    return hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()


def _read_tokenizer(path: Path) -> Tokenizer | None:
    try:
        return Tokenizer.from_buffer(path.read_bytes())
    except (OSError, ValueError) as error:
        log.warning("tokenizer %s cannot be read: %s", path.name, error)
        return None
