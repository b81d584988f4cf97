"""Django's request handling in a pool of threads, one hop a request.

Under Django's own ASGI handler a request of synchronous middleware and views crosses between the event loop and a
new thread several times. Here the loop reads the body, one pooled thread runs the whole request, and the loop sends
the response. The threads live on, so each keeps its database connection. Responses that stream have ASGI endpoints
of their own and never come here.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
MAX_BODY_BYTES = 8 << 20
IN_MEMORY_BYTES = 1 << 20
_TOO_LARGE = b'{"type":"about:blank","title":"Too large","status":413,"code":"too_large",' \
    b'"detail":"The request is larger than 8 MiB. Send large content as a file."}'  # fmt: skip


class ThreadedDjango:
    """An ASGI application over a WSGI one. At most `threads` requests run at once; the others wait their turn."""

    def __init__(self, app: WsgiApp, *, threads: int) -> None:
        self.app = app
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="http")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES) as body:
            if not await _read(receive, body):
                await _respond(send, 413, [(b"content-type", b"application/problem+json")], _TOO_LARGE)
                return
            body.seek(0)
            environ = build_environ(scope, body)
            loop = asyncio.get_running_loop()
            status, headers, content = await loop.run_in_executor(self.threads, self._run, environ)
        await _respond(send, status, headers, content)

    def _run(self, environ: dict[str, Any]) -> tuple[int, Headers, bytes]:
        started: list[tuple[int, Headers]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> None:
            pairs = [(key.lower().encode("latin-1"), value.encode("latin-1")) for key, value in headers]
            started.append((int(status[:3]), pairs))

        chunks = self.app(environ, start_response)
        try:
            content = b"".join(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        return *started[-1], content


def build_environ(scope: Scope, body: IO[bytes]) -> dict[str, Any]:
    """The WSGI variables (PEP 3333) of an ASGI HTTP scope."""
    host, port = scope.get("server") or ("localhost", 80)
    client = scope.get("client") or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode("utf-8").decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").upper().replace("-", "_"), raw_value.decode("latin-1")
        key = name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    if "CONTENT_LENGTH" not in environ:
        environ["CONTENT_LENGTH"] = str(body.seek(0, 2))
        body.seek(0)
    return environ


async def _read(receive: Receive, body: IO[bytes]) -> bool:
    """Copy the body; false when it is too large. A client that left gets an answer nobody reads."""
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return True
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY_BYTES:
            return False
        body.write(part)
        if not message.get("more_body"):
            return True


async def _respond(send: Send, status: int, headers: Headers, content: bytes) -> None:
    if not any(key == b"content-length" for key, _ in headers) and status not in (204, 304):
        headers = [*headers, (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
