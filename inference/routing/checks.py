"""Whether a step's answer must be given to a stronger model. Leaves to the runner when to ask, and to
`router.escalate` who answers instead.
"""

from __future__ import annotations

import re
from itertools import product

_REFUSAL_CHARACTERS_AT_MOST = 600
_REGRET = r"(?:i['’]?m|i am)? ?(?:very |so |truly )?sorry|i apologi[sz]e|unfortunately|as an? (?:ai|language model)"
_CANNOT = r"i (?:can ?not|can['’]t|am unable to|am not able to|won['’]t)|i['’]m (?:unable|not able) to"
_DECLINED = r"(?:answer|assist|help(?! but)|comply|provide|fulfil|complete|do that|respond|discuss|continue)\b"
# Regret may be a sentence of its own.
_REFUSAL = re.compile(
    rf"(?:(?:{_REGRET})\b[^.!?]{{0,60}}?(?:[.!]\s{{1,3}})?)?\b(?:{_CANNOT}) (?:\w+ )?{_DECLINED}", re.IGNORECASE
)

# The same for an answer of which only the beginning is there.
_BEGUN = re.compile(rf"(?:(?:{_REGRET})\b[^.!?]{{0,120}}|(?:{_CANNOT})(?: (?:\w+ ?)?\w*)?)\Z", re.IGNORECASE)
_REGRETTED = re.compile(rf"(?:{_REGRET})\b[^.!?]{{0,60}}[.!]\s*", re.IGNORECASE)
_APOLOGIES = product(("", "i'm ", "i’m ", "im ", "i am "), ("sorry", "very sorry", "so sorry", "truly sorry"))
_OPENINGS = (
    *map("".join, _APOLOGIES), "i apologise", "i apologize", "unfortunately", "as an ai", "as a ai",
    "as an language model", "as a language model", "i cannot", "i can not", "i can't", "i can’t", "i am unable to",
    "i am not able to", "i won't", "i won’t", "i'm unable to", "i’m unable to", "i'm not able to", "i’m not able to",
)  # fmt: skip


def failed_checks(text: str, *, tool_calls_valid: bool | None = None, plain: bool = True) -> str | None:
    """Why the answer is not good enough, in words, or None.

    `tool_calls_valid`: None when the step called no tool, False when a call was still invalid after its one repair.
    `plain`: False for a question that moderation has marked, which a model may rightly refuse."""
    if tool_calls_valid is False:
        return "its tool call was invalid after one repair"
    if tool_calls_valid is None and not text.strip():
        return "its answer was empty"
    if plain and is_refusal(text):
        return "it refused a plain question"
    return None


def is_refusal(text: str) -> bool:
    """Whether a short answer begins by declining. A long answer that also says what it cannot do is an answer."""
    said = text.strip()
    return len(said) <= _REFUSAL_CHARACTERS_AT_MOST and _REFUSAL.match(said) is not None


def may_be_refusal(text: str) -> bool:
    """Whether an answer that begins with this text may still turn out to be a refusal: at most its first words do,
    where it is an ordinary one."""
    said = text.strip()
    if len(said) > _REFUSAL_CHARACTERS_AT_MOST:
        return False
    if _REFUSAL.match(said):
        return True
    if regretted := _REGRETTED.match(said):
        said = said[regretted.end() :]
    begins = said.lower()
    return any(opening.startswith(begins) for opening in _OPENINGS) or _BEGUN.match(said) is not None
