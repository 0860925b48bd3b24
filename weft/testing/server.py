"""The rig's HTTP server: a real one on the loopback interface that answers what a test told it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, cast


@dataclass(frozen=True, slots=True)
class Request:
    """A request that arrived. Header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body read as JSON; ValueError where it is none."""
        return json.loads(self.body)


class Answer(NamedTuple):
    """What the server sends back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Server:
    """Answers by method and path; what nobody prepared gets a 501 and is kept in `unmatched`."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.unmatched: list[Request] = []
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        self._lock = threading.Lock()
        self._http = _HttpServer(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def prepare(self, method: str, path: str, answer: Answer) -> None:
        """Answers to one method and path are used in turn; the last one stays."""
        with self._lock:
            self._answers.setdefault((method.upper(), path), []).append(answer)

    def answer(self, request: Request) -> Answer:
        """Note the request, and what to send back."""
        with self._lock:
            self.requests.append(request)
            prepared = self._answers.get((request.method, request.path))
            if prepared:
                return prepared.pop(0) if len(prepared) > 1 else prepared[0]
            self.unmatched.append(request)
        text = f"nothing was prepared for {request.method} {request.path}"
        return Answer(501, {"content-type": "text/plain; charset=utf-8"}, text.encode())

    def close(self) -> None:
        """Stop listening, and wait for the thread that did."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    owner: Server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        path, _, query = self.path.partition("?")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, path, query, headers, self.rfile.read(length))
        answer = cast(_HttpServer, self.server).owner.answer(request)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve

    def log_message(self, format: str, *args: Any) -> None:
        """A test's output is the test's."""
