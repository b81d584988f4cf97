"""May an answer that broke off go on elsewhere, and from its token ids? The rules, as pure functions.

Responsible for: the verdict and its reason in words; which replicas read ids and think alike. Leaves to the caller how
an answer is continued (`Resume`), begun again, or ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from inference.protocol import InferenceError, ReplicaInfo

# Request fields under which engines constrain what is written (OpenAI's, vLLM's present and former names).
_CONSTRAINTS = ("structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar")


class Verdict(StrEnum):
    CONTINUE = "continue"  # from the committed tokens, with `Resume`
    RESTART = "restart"  # from the beginning, and what was written is dropped
    FAIL = "fail"


class NotContinuable(InferenceError):
    """The answer broke off where nobody may go on; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Written:
    """How far an answer had come. `shown`: a reader has seen text of it. `dispatched`: tools it has started."""

    shown: bool
    choices: int = 1
    structured: bool = False
    dispatched: int = 0


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote an answer so far. Digests as in `ReplicaInfo`."""

    replica: str = ""
    weights: str = ""
    tokenizer: str = ""

    @classmethod
    def of(cls, replica: ReplicaInfo) -> Origin:
        return cls(replica.id, replica.weights_digest, replica.tokenizer_digest)

    def reads_alike(self, replica: ReplicaInfo) -> bool:
        """Whether ids stand for the same text there. Of two whose tokenizers nobody knows only the same replica does:
        the text is understood by all."""
        if self.tokenizer or replica.tokenizer_digest:
            return self.tokenizer == replica.tokenizer_digest
        return self.replica == replica.id

    def thinks_otherwise(self, replica: ReplicaInfo) -> bool:
        """Whether other weights are known to be there."""
        return bool(self.weights and replica.weights_digest) and self.weights != replica.weights_digest

    def others(self, left: Sequence[ReplicaInfo]) -> list[str]:
        """Of the replicas that are left those of other weights, which are not to go on; none where nothing else is
        left."""
        others = [replica.id for replica in left if self.thinks_otherwise(replica)]
        return others if len(others) < len(left) else []


NOBODY = Origin()


def judge(written: Written) -> tuple[Verdict, str]:
    """The verdict, and why not where it is no.

    A tool that was started has acted on the world: another pass might start it again. Several choices have no single
    text to go on from. A grammar would begin anew in the middle of the structure and accept what makes no whole.
    """
    if written.dispatched:
        return Verdict.FAIL, "The model stopped answering after a tool had been started; it is not started twice."
    if written.choices == 1 and not written.structured:
        return Verdict.CONTINUE, ""
    if not written.shown:
        return Verdict.RESTART, ""
    what = "structured output" if written.structured else "several answers at once"
    return Verdict.FAIL, f"The model stopped in the middle of {what}, which cannot be continued. Try again."


def is_structured(extra: Mapping[str, Any]) -> bool:
    """Whether a request's additions constrain its output to a schema, a grammar or a list, or let it call tools."""
    if extra.get("tools") and extra.get("tool_choice") != "none":
        return True
    shape = extra.get("response_format")
    kind = shape.get("type") if isinstance(shape, Mapping) else None
    return kind not in (None, "text") or any(extra.get(name) for name in _CONSTRAINTS)


def choices_of(extra: Mapping[str, Any]) -> int:
    return int(extra.get("n") or 1)
