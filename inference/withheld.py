"""An answer that is given out only once it may be seen.

Responsible for: keeping what arrives, and letting it go. Leaves to its maker what may be seen.
"""

from __future__ import annotations

from collections.abc import Callable

from inference.protocol import Delta, DeltaStream


class WithheldStream(DeltaStream):
    """Keeps a stream's deltas while `holds` says so of their text, always where it is None, then gives all of them and
    passes on what follows. What is kept to the end goes through `settle`, which may change it, or raise what reading
    the stream then raises. `kept`: what came and was not given out."""

    __slots__ = ("_holds", "_open", "_settle", "_stream", "kept")

    def __init__(
        self, stream: DeltaStream, *, settle: Callable[[Delta], Delta], holds: Callable[[str], bool] | None = None
    ) -> None:
        self.kept = Delta()
        self._stream, self._settle, self._holds = stream, settle, holds
        self._open = False

    def __aiter__(self) -> WithheldStream:
        return self

    async def __anext__(self) -> Delta:
        async for delta in self._stream:
            if (given := self._give(delta)) is not None:
                return given
        raise StopAsyncIteration

    def take(self) -> Delta | None:
        delta = self._stream.take()
        return None if delta is None else self._give(delta)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _give(self, delta: Delta) -> Delta | None:
        if self._open:
            return delta
        kept = self.kept
        kept.text += delta.text
        kept.token_ids += delta.token_ids
        kept.tokens += delta.tokens
        kept.prompt_token_ids = kept.prompt_token_ids or delta.prompt_token_ids
        kept.finish_reason, kept.usage, kept.tool_calls = delta.finish_reason, delta.usage, delta.tool_calls
        if kept.finish_reason is not None:
            return self._release(self._settle(kept))
        return None if self._holds is None or self._holds(kept.text) else self._release(kept)

    def _release(self, delta: Delta) -> Delta:
        self._open, self.kept = True, Delta()
        return delta
