"""The scripted engine's text is a pure function, and continues exactly from any point."""

from __future__ import annotations

import pytest

from inference.engines.script import (
    OUTPUT_BASE,
    Fault,
    Script,
    count_output,
    decode,
    encode,
    expected_text,
    parse_script,
    plan_answer,
    render,
    unrender,
)
from inference.protocol import ChatMessage


def user(text: str) -> tuple[ChatMessage, ...]:
    return (ChatMessage("system", "Be short."), ChatMessage("user", text))


def say_all(text: str, **options: object) -> str:
    plan = plan_answer("fake", user(text), max_tokens=1000, **options)  # type: ignore[arg-type]
    return plan.head + "".join(map(plan.piece, range(plan.start, plan.end)))


def test_instructions_in_the_name_and_in_the_prompt() -> None:
    found = parse_script("mock-n200-ttft50-itl10-cut100", "hello")
    assert (found.n, found.ttft_ms, found.itl_ms, found.fault) == (200, 50, 10, Fault("die", 100))
    assert parse_script("mock-err429", "").fault == Fault("refuse", 429)
    assert parse_script("fake-n5", "n:9 seed:abc hang:3") == Script(n=9, seed="abc", fault=Fault("hang", 3))


def test_said_words_are_the_answer() -> None:
    assert say_all("please say: It is on page 3 [1].\nnothing else") == "It is on page 3 [1]."


def test_the_toy_tokenizer_is_reversible() -> None:
    for text in ("", "a", "héllo 日本🙂", "x" * 1000):
        assert decode(encode(text)) == text
    messages = [ChatMessage("user", "Grüße"), ChatMessage("assistant", ""), ChatMessage("user", "seed:x")]
    assert unrender([*render(messages), OUTPUT_BASE, OUTPUT_BASE + 1]) == (messages, [OUTPUT_BASE, OUTPUT_BASE + 1])


@pytest.mark.parametrize("said", range(31))
def test_continuing_by_ids_gives_the_rest(said: int) -> None:
    ids = range(OUTPUT_BASE, OUTPUT_BASE + said)
    whole = expected_text(30, "s")
    done = "".join(expected_text(said, "s")) if said else ""
    assert done + say_all("seed:s n:30", said_ids=tuple(ids)) == whole


def test_continuing_by_text_gives_the_rest_from_any_character() -> None:
    whole = expected_text(30, "s")
    for i in range(len(whole) + 1):
        assert whole[:i] + say_all("seed:s n:30", said_text=whole[:i]) == whole


def test_output_that_is_not_the_scripts_is_refused() -> None:
    with pytest.raises(ValueError, match="not the first ones"):
        count_output([OUTPUT_BASE, OUTPUT_BASE + 2])
    with pytest.raises(ValueError, match="differs"):
        say_all("seed:s n:30", said_text="[s] 1something else")


def test_length_and_stop_end_an_answer() -> None:
    plan = plan_answer("fake", user("n:30"), max_tokens=7)
    assert (plan.end, plan.finish_reason) == (7, "length")
    assert plan_answer("fake", user("n:30"), max_tokens=30).finish_reason == "stop"
    plan = plan_answer("fake", user("n:30"), max_tokens=30, stop=("4é",))
    assert (plan.end, plan.finish_reason) == (4, "stop")


def test_a_continuation_does_not_break_again() -> None:
    assert plan_answer("fake", user("n:30 die:5"), max_tokens=30).fault == Fault("die", 5)
    assert plan_answer("fake", user("n:30 die:5"), max_tokens=30, said_ids=(OUTPUT_BASE,)).fault is None


def test_calls_fences_and_what_follows_another_message() -> None:
    calls = parse_script("fake", 'call:weather {"city": "Ulm"}\ncall:now').calls
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("call_0", "weather", '{"city": "Ulm"}'),
        ("call_1", "now", ""),
    ]
    assert say_all('fence: {"a": 1}') == '```json\n{"a": 1}\n```'
    plan = plan_answer("fake", user("call:now {}"), max_tokens=1000)
    assert (plan.finish_reason, say_all("call:now {}")) == ("tool_calls", "")
    talk = (*user("say: one\nagain: say: two"), ChatMessage("assistant", "one"), ChatMessage("user", "hm?"))
    assert plan_answer("fake", talk[:2], max_tokens=9).script.say == "one"
    assert plan_answer("fake", talk, max_tokens=9).script.say == "two"


def test_a_line_for_one_model_is_not_heard_by_others() -> None:
    talk = user("@small say: no\n@large say: yes")
    assert [plan_answer(name, talk, max_tokens=9).script.say for name in ("small", "large", "other")] == [
        "no",
        "yes",
        "",
    ]


def test_the_answer_to_a_tools_result_is_that_result() -> None:
    talk = (*user("call:now {}"), ChatMessage("assistant", ""), ChatMessage("tool", "noon", tool_call_id="call_0"))
    plan = plan_answer("fake", talk, max_tokens=9)
    assert (plan.script.say, plan.finish_reason) == ("noon", "stop")


def test_nothing_is_called_without_tools_and_again_follows_a_tools_result() -> None:
    text = "call:now {}\nagain: call:then {}\nsay: noon it is"
    assert plan_answer("fake", user(text), max_tokens=9, tools=False).script.say == "noon it is"
    assert plan_answer("fake", user(text), max_tokens=9, tools=False).script.calls == ()
    talk = (*user(text), ChatMessage("assistant", ""), ChatMessage("tool", "noon", tool_call_id="call_0"))
    assert [call.name for call in plan_answer("fake", talk, max_tokens=99).script.calls] == ["then"]
