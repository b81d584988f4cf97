"""What the scripted engines say: text, token ids and misbehaviour as pure functions of model name and prompt.

Responsible for: parsing instructions, the tokens of an answer, the toy tokenizer, and finding the place where a
continued answer goes on. Leaves to `fake` (in process) and `fake_server` (HTTP) the clock and the transport.

Instructions stand in the model's name (`fake-n200-ttft50-itl10`) or in the last user message (`n:200 seed:abc`):
  n, ttft, itl, burst   tokens, ms to the first, ms between tokens, tokens a write when itl is 0
  seed:word             token 0 is `[word]`, so that crossed streams are noticed
  say: some words       the rest of that line is the answer
  fence: {...}          the rest of that line is the answer, in a fence as models put JSON in one
  call:name {...}       the rest of that line is what a tool is called with; several lines, several calls
  again: instructions   what is done when another user message, or a tool's result, follows this one
  @model instructions   a line for the model of that name alone
  die:N hang:N garbage:N error:N abort:N truncate:N   break after N tokens, unless the request is a continuation
  empty:N ids:N         from there on only empty events, or ids that no vocabulary has
  refuse:STATUS         answer with that HTTP status; shutdown:1 fails as a server does that is being stopped
The answer to a tool's result is that result, and without tools in the request nothing is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from inference.protocol import ChatMessage, WrittenCall

ENDINGS = (
    "alpha",
    "be",
    "gam",
    ",",
    "é",
    "δελτα",
    " “q”",
    "\n",
    "🙂",
    '"x"',
    "\\y",
    "tion",
    "ing",
    ".",
    "日本",
    "er",
)
STREAM_FAULTS = frozenset({"die", "hang", "empty", "garbage", "ids", "error", "abort", "truncate"})
FIRST_FAULTS = frozenset({"refuse", "shutdown"})

_TIMING = "n|ttft|itl|burst"
_FAULT = "|".join(sorted(STREAM_FAULTS | FIRST_FAULTS))
_IN_NAME = re.compile(rf"-({_TIMING}|cut|err)(\d+)")
_IN_TEXT = re.compile(rf"\b({_TIMING}|{_FAULT}):(\d+)")
_SEED = re.compile(r"\bseed:(\w+)")
_SAY = re.compile(r"\bsay:[ ]?([^\n]+)")
_FENCE = re.compile(r"\bfence:[ ]?([^\n]+)")
_CALL = re.compile(r"\bcall:([\w-]+)[ ]?([^\n]*)")
_AGAIN = re.compile(r"^again:[ ]?(.*)$", re.MULTILINE)
_FOR_ONE = re.compile(r"^@(\S+)[ ]?(.*)$", re.MULTILINE)
_OLD_NAMES = {"cut": "die", "err": "refuse"}

MESSAGE_START, ROLE_END, MESSAGE_END = 1, 2, 3
OUTPUT_BASE, OUTPUT_END = 100, 1 << 24
_MAX_TOKENS = 100_000
_CALL_PIECE = 6


class Fault(NamedTuple):
    """`at`: tokens before it strikes, or the HTTP status of a refusal."""

    kind: str
    at: int


def fake_token(i: int, seed: str = "") -> str:
    return f"[{seed}]" if i == 0 else f" {i}{ENDINGS[i % len(ENDINGS)]}"


def expected_text(n: int, seed: str = "") -> str:
    """The whole answer of `n` tokens to a prompt that says `seed:<seed>`."""
    return "".join(fake_token(i, seed) for i in range(n))


@dataclass(frozen=True)
class Script:
    n: int = 40
    seed: str = ""
    ttft_ms: int = 0
    itl_ms: int = 0
    burst: int = 1
    say: str = ""
    fault: Fault | None = None
    calls: tuple[WrittenCall, ...] = ()

    @cached_property
    def words(self) -> tuple[str, ...]:
        return tuple(re.findall(r"\s*\S+", self.say))

    @cached_property
    def call_pieces(self) -> tuple[dict[str, Any], ...]:
        """The calls as they are streamed: a piece with the name, then the arguments bit by bit."""
        return tuple(piece for index, call in enumerate(self.calls) for piece in _pieces(index, call))

    @property
    def length(self) -> int:
        return len(self.call_pieces) or len(self.words) or self.n

    def token(self, i: int) -> str:
        """The text of a token; calls have none."""
        if self.calls:
            return ""
        return self.words[i] if self.words else fake_token(i, self.seed)

    def start_after(self, text: str) -> tuple[int, str]:
        """(index of the next whole token, rest of the token that `text` breaks off in)."""
        done = 0
        for i in range(self.length):
            if done == len(text):
                return i, ""
            token = self.token(i)
            if not token.startswith(text[done : done + len(token)]):
                raise ValueError(f"the text to continue differs from the script at token {i}")
            if len(text) < done + len(token):
                return i + 1, token[len(text) - done :]
            done += len(token)
        if done != len(text):
            raise ValueError("the text to continue is longer than the script")
        return self.length, ""


def _pieces(index: int, call: WrittenCall) -> Iterator[dict[str, Any]]:
    view = call.view()
    yield {"index": index, **view, "function": {"name": call.name, "arguments": ""}}
    for at in range(0, len(call.arguments), _CALL_PIECE):
        yield {"index": index, "function": {"arguments": call.arguments[at : at + _CALL_PIECE]}}


DEFAULT_SCRIPT = Script()


@lru_cache(maxsize=512)
def parse_script(model: str, prompt: str, default: Script = DEFAULT_SCRIPT) -> Script:
    """Script of an answer to `prompt`, the instructions of a conversation."""
    found = {_OLD_NAMES.get(k, k): int(v) for k, v in _IN_NAME.findall(model)}
    found |= {k: int(v) for k, v in _IN_TEXT.findall(prompt)}
    fault = next(
        (Fault(k, v) for k, v in found.items() if k in STREAM_FAULTS | FIRST_FAULTS),
        default.fault,
    )
    seed, say, fence = _SEED.search(prompt), _SAY.search(prompt), _FENCE.search(prompt)
    said = say[1] if say else f"```json\n{fence[1]}\n```" if fence else default.say
    return Script(
        n=min(found.get("n", default.n), _MAX_TOKENS),
        seed=seed[1] if seed else default.seed,
        ttft_ms=found.get("ttft", default.ttft_ms),
        itl_ms=found.get("itl", default.itl_ms),
        burst=max(1, found.get("burst", default.burst)),
        say=said,
        fault=fault,
        calls=tuple(WrittenCall(f"call_{n}", *call) for n, call in enumerate(_CALL.findall(prompt))),
    )


def instructions(model: str, messages: Sequence[ChatMessage]) -> str:
    """What the last user message tells this model to do, or the one before it for the message after."""
    asked = [_heard(model, m.content) for m in messages if m.role == "user"][-2:]
    if len(asked) == 2 and (again := _AGAIN.search(asked[0])):
        return again[1]
    return _AGAIN.sub("", asked[-1]) if asked else ""


def _heard(model: str, text: str) -> str:
    """The text without the lines for other models."""
    return _FOR_ONE.sub(lambda line: line[2] if line[1] == model else "", text)


# ---------------------------------------------------------------- toy tokenizer: three bytes an id, reversible


def encode(text: str) -> list[int]:
    data = text.encode()
    return [
        len(piece) << 24 | int.from_bytes(piece, "big") for piece in (data[i : i + 3] for i in range(0, len(data), 3))
    ]


def decode(ids: Iterable[int]) -> str:
    return b"".join((i & 0xFFFFFF).to_bytes(i >> 24, "big") for i in ids).decode()


def render(messages: Sequence[ChatMessage], *, open_last: bool = False) -> list[int]:
    """Prompt ids. `open_last`: the last message is not closed, so that the answer goes on inside it."""
    ids: list[int] = []
    for message in messages:
        ids += (
            MESSAGE_START,
            *encode(message.role),
            ROLE_END,
            *encode(message.spoken),
            MESSAGE_END,
        )
    if open_last:
        return ids[:-1]
    return [*ids, MESSAGE_START, *encode("assistant"), ROLE_END]


def unrender(ids: Sequence[int]) -> tuple[list[ChatMessage], list[int]]:
    """(messages before the answer, output ids after the prompt). ValueError on ids that `render` never makes."""
    messages: list[ChatMessage] = []
    role, piece, output = "", list[int](), list[int]()
    for i in ids:
        if i in (MESSAGE_START, ROLE_END, MESSAGE_END):
            if output:
                raise ValueError("prompt ids after output ids")
            if i == ROLE_END:
                role = decode(piece)
            elif i == MESSAGE_END:
                messages.append(ChatMessage(role, decode(piece)))
            piece = []
        elif OUTPUT_BASE <= i < OUTPUT_END:
            output.append(i)
        else:
            piece.append(i)
    return messages, output


def count_output(ids: Sequence[int]) -> int:
    """Tokens already said, when `ids` are the script's first ones in order; ValueError otherwise."""
    if list(ids) != list(range(OUTPUT_BASE, OUTPUT_BASE + len(ids))):
        raise ValueError("the ids to continue are not the first ones of the script")
    return len(ids)


# ---------------------------------------------------------------- one request, planned


@dataclass(frozen=True, slots=True)
class Plan:
    """An answer to give: tokens `start`..`end` (exclusive) after the broken piece `head`, then `finish_reason`."""

    script: Script
    prompt_ids: tuple[int, ...]
    start: int
    end: int
    head: str
    finish_reason: str
    fault: Fault | None

    def piece(self, i: int) -> str:
        return self.script.token(i)


def _script_for(model: str, messages: Sequence[ChatMessage], default: Script) -> Script:
    if not messages or messages[-1].role != "tool":
        return parse_script(model, instructions(model, messages), default)
    asked = next((_heard(model, m.content) for m in reversed(messages) if m.role == "user"), "")
    if again := _AGAIN.search(asked):
        return parse_script(model, again[1], default)
    return replace(default, say=messages[-1].content)


def plan_answer(
    model: str,
    messages: Sequence[ChatMessage],
    *,
    max_tokens: int,
    stop: Sequence[str] = (),
    said_ids: Sequence[int] = (),
    said_text: str = "",
    default: Script = DEFAULT_SCRIPT,
    tools: bool = True,
) -> Plan:
    """Plan of the answer to `messages`, after what was already said. ValueError when that is not from the script."""
    script = _script_for(model, messages, default)
    if not tools:
        script = replace(script, calls=())
    start, head = (count_output(said_ids), "") if said_ids else script.start_after(said_text)
    end = min(script.length, start + max(0, max_tokens - bool(head)))
    finish = ("tool_calls" if script.calls else "stop") if end >= script.length else "length"
    if stop:
        end, finish = _apply_stop(script, start, end, finish, stop)
    prompt = render(messages)
    fault = None if start or head else script.fault
    return Plan(script, tuple(prompt), start, max(start, end), head, finish, fault)


def _apply_stop(script: Script, start: int, end: int, finish: str, stop: Sequence[str]) -> tuple[int, str]:
    """The toy engine stops at whole tokens: before the first one that completes a stop string."""
    text = ""
    for i in range(start, end):
        text += script.token(i)
        if any(s in text for s in stop):
            return i, "stop"
    return end, finish


def message_of(raw: dict[str, Any]) -> ChatMessage:
    """A chat message as OpenAI's API carries it; parts are joined, images are ignored."""
    content = raw.get("content") or ""
    if isinstance(content, list):
        content = " ".join(part.get("text", "") for part in content)
    return ChatMessage.read({"role": "user", **raw, "content": content})
