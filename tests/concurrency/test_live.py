"""Real processes asked by many at once: two webs, two runners, one database."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from threading import Barrier
from typing import Any

import pytest
import redis

from apps.conversations.eventlog import lane_key
from apps.conversations.types import Lane
from inference.engines.script import expected_text
from tests.client import Api, Reply, eventually
from tests.stack import Stack

pytestmark = pytest.mark.timeout(300)
POSTS = KEYS = 50


def sql(stack: Stack, query: str) -> str:
    return stack.services.postgres.ask(query, stack.name)


def at_once(webs: tuple[Api, Api], path: str, bodies: list[Any], key: str | None = None) -> list[Reply]:
    """Post all bodies behind one barrier, spread over the webs."""
    barrier = Barrier(len(bodies))

    def post(call: tuple[Any, Api]) -> Reply:
        body, web = call
        barrier.wait(timeout=60)
        return web.call("POST", path, body, headers={"idempotency-key": key} if key else {})

    with ThreadPoolExecutor(max_workers=len(bodies)) as pool:
        return list(pool.map(post, zip(bodies, cycle(webs), strict=False)))


def question(text: str) -> dict[str, Any]:
    return {"client_id": str(uuid.uuid4()), "text": text}


def test_fifty_posts_of_each_of_fifty_keys_make_fifty_runs(stack: Stack, webs: tuple[Api, Api]) -> None:
    conversation = webs[0].new_conversation()
    path = f"/api/conversations/{conversation}/messages"
    runs: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    for number in range(KEYS):
        replies = at_once(webs, path, [question(f"n:2 seed:k{number}")] * POSTS, f"key-{conversation}-{number}")
        statuses.update(reply.status for reply in replies)
        runs.update(reply.json["run"]["id"] for reply in replies)
    assert statuses == {201: KEYS, 200: KEYS * (POSTS - 1)}
    assert len(runs) == KEYS
    assert set(runs.values()) == {POSTS}
    where = f"conversation_id = '{conversation}'"
    assert sql(stack, f"select count(*) from conversations_run where {where}") == str(KEYS)
    seqs = sql(stack, f"select json_agg(seq order by seq) from conversations_message where {where}")
    assert json.loads(seqs) == list(range(1, 2 * KEYS + 1))


def test_posts_to_one_conversation_through_two_webs_leave_no_gaps(stack: Stack, webs: tuple[Api, Api]) -> None:
    conversation = webs[0].new_conversation()
    replies = at_once(webs, f"/api/conversations/{conversation}/messages", [question("n:2") for _ in range(40)])
    assert {reply.status for reply in replies} == {201}
    rows = webs[1].messages(conversation)
    assert [row["seq"] for row in rows] == list(range(1, 81))
    assert {row["parent_id"] for row in rows[1::2]} == {row["id"] for row in rows[::2]}


def test_two_runners_share_the_work_and_do_each_piece_once(stack: Stack, webs: tuple[Api, Api]) -> None:
    conversation = webs[0].new_conversation()
    texts = [f"n:30 itl:5 seed:share{number}" for number in range(60)]
    path = f"/api/conversations/{conversation}/messages"
    replies = at_once(webs, path, [question(text) for text in texts])
    with ThreadPoolExecutor(max_workers=10) as pool:
        audits = list(pool.map(lambda reply: webs[0].read(reply.json["run"]["id"]), replies))
    assert all(audit.is_clean for audit in audits)
    assert [audit.reading.text for audit in audits] == [expected_text(30, f"share{n}") for n in range(60)]
    steps = sql(
        stack,
        "select json_agg(jsonb_path_query_array(transitions, '$.state')) from conversations_run"
        f" where conversation_id = '{conversation}'",
    )
    assert json.loads(steps) == [["queued", "running", "completed"]] * 60
    owners = sql(
        stack, f"select count(distinct owner_id) from conversations_run where conversation_id = '{conversation}'"
    )
    assert owners == "2"
    for runner in ("runner-1", "runner-2"):
        assert "run.fenced_out" not in stack.log(runner), "nobody was killed, so nobody may have been fenced"
        assert "run.failed" not in stack.log(runner)


def test_a_run_whose_hint_was_lost_is_found_within_two_seconds(stack: Stack, webs: tuple[Api, Api]) -> None:
    for runner in ("runner-1", "runner-2"):
        stack.terminate(runner)
    run = webs[0].ask(webs[0].new_conversation(), "n:2 seed:lost")["run"]["id"]
    with redis.Redis.from_url(stack.valkey.url()) as valkey:
        assert valkey.delete(lane_key(Lane.INTERACTIVE)) == 1
    assert webs[0].run(run)["state"] == "queued"
    stack.restart("runner-1")
    began = time.monotonic()
    eventually(lambda: webs[0].run(run)["state"] == "completed", every=0.02)
    assert time.monotonic() - began < 2.0
    stack.restart("runner-2")
