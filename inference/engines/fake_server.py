"""The scripted engine as an OpenAI-compatible server in vLLM's manner, light enough to benchmark against.

    python -m inference.engines.fake_server --port 9100 --itl 10

Responsible for: connections, routes, and being told to misbehave (`POST /control` with
`{"fault": "die", "at": 5, "times": 1}` for the next answers, `{"now": "hang"}` for all that run or come until
`{"now": ""}`, `{"healthy": false}` or `{"stopping": true}`). What is said is in `script`,
how it is streamed in `fake_stream`, who gets in in `fake_replica`, what is pooled in `fake_pooling`. `--manner`
imitates another kind of server.

Routes: /v1/models /v1/chat/completions /v1/completions /v1/embeddings /v1/rerank /tokenize /detokenize
/version /health /metrics /stats /inference/v1/abort_requests /control
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import httptools
import orjson

from inference.engines import script
from inference.engines.fake_manners import MANNERS
from inference.engines.fake_replica import FakeReplica, Options, Refusal
from inference.engines.fake_stream import HEAD, Stream
from inference.engines.script import Plan, Script, message_of
from inference.protocol import ChatMessage

_MAX_BODY = 64 << 20


class FakeServer:
    """A scripted replica that listens. `serve` starts one."""

    def __init__(self, options: Options) -> None:
        self.replica = FakeReplica(asyncio.get_running_loop(), options)
        self.connections: set[_Connection] = set()
        self.port = 0
        self._listener: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        self._listener = await self.replica.loop.create_server(lambda: _Connection(self), host, port, backlog=8192)
        self.port = self._listener.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def close(self) -> None:
        """Stop listening and drop every connection, as a killed server would."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.drop()
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """One client connection: reads whole requests, answers them in order, one at a time."""

    def __init__(self, owner: FakeServer) -> None:
        self.owner = owner
        self.server = owner.replica
        self.transport: asyncio.Transport
        self.stream: Stream | None = None
        self.writable = True
        self._parser = httptools.HttpRequestParser(self)
        self._url, self._body, self._size = b"", list[bytes](), 0
        self._headers: dict[bytes, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast and not a check: uvloop has a class of its own.
        self.transport = cast(asyncio.Transport, transport)
        self.owner.connections.add(self)
        self.server.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        self.owner.connections.discard(self)
        self.server.connections -= 1
        if self.stream is not None:
            self.stream.lost()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        if self.stream is not None and self.stream.waiting:
            self.stream.waiting = False
            self.stream.step()

    def write(self, data: bytes) -> None:
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def drop(self) -> None:
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.close()

    def on_message_begin(self) -> None:
        self._url, self._body, self._size, self._headers = b"", [], 0, {}

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value
        if name.lower() == b"expect":
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > _MAX_BODY:
            self.transport.close()
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        self.server.requests += 1
        try:
            self._route(self._url.split(b"?")[0].decode("latin-1"))
        except Refusal as refusal:
            kind = "invalid_request_error" if refusal.status < 500 else "InternalServerError"
            error = {"message": refusal.message, "type": kind, "code": refusal.status}
            self._reply({"error": error}, refusal.status)

    def _route(self, path: str) -> None:
        server, options = self.server, self.server.options
        if options.api_key and path.startswith("/v1") and not self._has_key():
            raise Refusal(401, "wrong API key")
        if path == "/v1/chat/completions":
            return self._answer(self._json(), chat=True)
        if path == "/v1/completions":
            return self._answer(self._json(), chat=False)
        if path in ("/v1/embeddings", "/v1/rerank"):
            return self._pool(path, self._json())
        always: dict[str, Callable[[], Any]] = {
            "/v1/models": self._models,
            "/stats": server.stats,
            "/control": lambda: server.control(self._json()),
        }
        optional: dict[str, Callable[[], Any]] = {
            "/version": lambda: {"version": "0.32.0+fake"},
            "/metrics": server.metrics,
            "/tokenize": self._tokenize,
            "/detokenize": self._detokenize,
            "/inference/v1/abort_requests": lambda: server.abort_requests(self._json()["request_ids"]),
            "/health": self._health,
            "/live": lambda: {"status": "live"},
            "/readiness": self._health,
            "/-/healthz": self._health,
            "/workers": lambda: {"workers": [{"url": "w", "is_healthy": True, "load": len(server.running)}]},
        }
        route = always.get(path) or (optional.get(path) if path in server.manner.routes else None)
        if route is None:
            raise Refusal(404, "Not Found")
        return self._reply(route())

    def _has_key(self) -> bool:
        return self._headers.get(b"authorization") == f"Bearer {self.server.options.api_key}".encode()

    def _json(self) -> dict[str, Any]:
        try:
            value = orjson.loads(b"".join(self._body))
        except orjson.JSONDecodeError:
            raise Refusal(400, "the body is not JSON") from None
        if not isinstance(value, dict):
            raise Refusal(400, "the body is not an object")
        return value

    def _models(self) -> dict[str, Any]:
        more = {} if not self.server.manner.additions else {"max_model_len": self.server.options.context}
        entry = {"object": "model", "created": 1700000000, "owned_by": "fake", **more}
        return {"object": "list", "data": [{"id": m, **entry} for m in self.server.options.models]}

    def _health(self) -> Any:
        """Dynamo's answers 200 always and says in words whether a worker is there."""
        if self.server.options.manner == "dynamo":
            return {"status": "healthy" if self.server.healthy else "unhealthy"}
        if not self.server.healthy:
            raise Refusal(503, "unhealthy")
        return b""

    def _tokenize(self) -> dict[str, Any]:
        body = self._json()
        if "messages" in body:
            ids = script.render([message_of(m) for m in body["messages"]])
        else:
            ids = script.encode(str(body.get("prompt", "")))
        tokens = [id + self.server.options.shift for id in ids]
        return {"count": len(ids), "max_model_len": self.server.options.context, "tokens": tokens}

    def _detokenize(self) -> dict[str, Any]:
        """Output ids are positions of a script that this route does not know."""
        raise Refusal(400, "output ids of a script have no text of their own")

    def _answer(self, body: dict[str, Any], *, chat: bool) -> None:
        plan, usage = self.server.plan(body, chat=chat)
        model = str(body.get("model", "fake"))
        if not body.get("stream"):
            self._answer_whole(plan, usage, model, chat=chat)
            return
        voice = self.server.voice(model, chat=chat, ids=bool(body.get("return_token_ids")))
        shown = usage if (body.get("stream_options") or {}).get("include_usage") else None
        request_id = self._headers.get(b"x-request-id", b"").decode("latin-1")
        self.transport.write(HEAD)
        self.stream = Stream(self.server, self, plan, voice, shown, request_id)
        self.server.enter(self.stream)

    def _answer_whole(self, plan: Plan, usage: dict[str, Any], model: str, *, chat: bool) -> None:
        text = plan.head + "".join(map(plan.piece, range(plan.start, plan.end)))
        said = {"message": ChatMessage("assistant", text, plan.script.calls).view()} if chat else {"text": text}
        choice = {"index": 0, **said, "finish_reason": plan.finish_reason}
        kind, prefix = ("chat.completion", "chatcmpl") if chat else ("text_completion", "cmpl")
        whole = {"id": f"{prefix}-fake", "object": kind, "created": 1700000000, "model": model, "choices": [choice]}
        self.server.tokens += plan.end - plan.start
        wait = (plan.script.ttft_ms + (plan.end - plan.start) * plan.script.itl_ms) / 1000
        reply = {**whole, "usage": usage}
        if wait:
            self.server.wheel.at(self.server.loop.time() + wait, lambda: self._reply(reply))
        else:
            self._reply(reply)

    def _pool(self, path: str, body: dict[str, Any]) -> None:
        pooling = self.server.pooling
        if pooling.fault in ("refuse", "fail"):
            raise Refusal(400 if pooling.fault == "refuse" else 500, "the script refuses this request")
        reply = pooling.embeddings(body) if path == "/v1/embeddings" else pooling.rerank(body)
        self.server.wheel.at(self.server.loop.time() + pooling.delay_s, lambda: self._reply(reply))

    def _reply(self, value: Any, status: int = 200) -> None:
        data = value if isinstance(value, bytes) else b"" if value is None else orjson.dumps(value)
        kind = b"text/plain; version=0.0.4" if isinstance(value, bytes) else b"application/json"
        head = b"HTTP/1.1 %d %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n"
        self.write(head % (status, b"OK" if status < 400 else b"Error", kind, len(data)) + data)


async def serve(options: Options | None = None, *, host: str = "127.0.0.1", port: int = 0) -> FakeServer:
    """A listening server; `port` 0 takes a free one."""
    server = FakeServer(options or Options())
    await server.start(host, port)
    return server


def _parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--slots", type=int, default=1024, help="answers that run at once")
    parser.add_argument("--queue", type=int, default=1024, help="answers that wait; more get 503")
    parser.add_argument("--context", type=int, default=131_072, help="tokens of prompt and answer")
    parser.add_argument("--model", action="append", help="a name to list; any name is served")
    parser.add_argument("--n", type=int, default=40, help="tokens of an answer")
    parser.add_argument("--ttft", type=int, default=0, help="ms to the first token")
    parser.add_argument("--itl", type=int, default=0, help="ms between tokens")
    parser.add_argument("--burst", type=int, default=1, help="tokens a write when itl is 0")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--shift", type=int, default=0, help="added to every token id: another tokenizer")
    parser.add_argument("--manner", choices=MANNERS, default="vllm", help="the kind of server to imitate")
    return parser.parse_args()


async def _main(args: argparse.Namespace) -> None:
    models = tuple(dict.fromkeys(["fake", *(args.model or ["fake-slow"])]))
    default = Script(n=args.n, ttft_ms=args.ttft, itl_ms=args.itl, burst=args.burst)
    options = Options(args.slots, args.queue, args.context, models, default, args.api_key, args.manner, args.shift)
    server = await serve(options, host=args.host, port=args.port)
    sys.stdout.write(f"fake server on http://{args.host}:{server.port}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    with suppress(KeyboardInterrupt):
        uvloop.run(_main(_parse_args()))
