"""Run a local web server that misbehaves on demand, and records the requests."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """Describe one address of the server. Each field is a way in which the server misbehaves."""

    content: bytes = b""
    status: int = 200
    location: str = ""  # redirect to this address
    ranges: bool = True  # answer requests for a part
    etag: str = '"1"'
    length: bool = True  # send the length of the content
    cuts: list[int] = field(default_factory=list)  # cut the next answers after these numbers of bytes
    delay: float = 0.0  # seconds to wait before the content, or
    stall: int = 0  # after this number of bytes of it
    shift: int = 0  # send another part than requested
    headers: dict[str, str] = field(default_factory=dict)  # send these headers in place of the right ones
    chunked: bool = False  # send the content as one chunk of a chunked answer
    reason: str | None = None  # words after the status; None: the usual ones


@dataclass
class Site:
    address: str
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)  # path and Range of each request

    def put(self, name: str, content: bytes = b"", **options: object) -> str:
        self.pages[f"/{name}"] = Page(content, **options)  # type: ignore[arg-type]
        return f"{self.address}/{name}"

    def ranges(self) -> list[str]:
        return [requested_range for _, requested_range in self.asked]


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        requested_range = self.headers.get("Range", "")
        self.site.asked.append((self.path, requested_range))
        page = self.site.pages.get(self.path, Page(status=404))
        start = self._start(page, requested_range)
        if start is not None and start >= len(page.content):
            self._head(416, {"Content-Length": "0"})
            return
        start = None if start is None else start + page.shift
        body = page.content[start or 0 :]
        headers = {"ETag": page.etag} | ({"Location": page.location} if page.location else {})
        headers |= {"Content-Length": str(len(body))} if page.length else {}
        if start is not None:
            headers["Content-Range"] = f"bytes {start}-{len(page.content) - 1}/{len(page.content)}"
        headers |= ({"Transfer-Encoding": "chunked"} if page.chunked else {}) | page.headers
        self._head(206 if start is not None else page.status, headers, page.reason)
        if page.chunked:
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        self.wfile.write(body[: page.stall])
        time.sleep(page.delay)
        body = body[page.stall :]
        self.wfile.write(body[: page.cuts.pop(0)] if page.cuts else body)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def _start(self, page: Page, requested_range: str) -> int | None:
        match = re.fullmatch(r"bytes=(\d+)-", requested_range)
        unchanged = self.headers.get("If-Range", page.etag) == page.etag
        return int(match[1]) if match and page.ranges and unchanged and page.status == 200 else None

    def _head(self, status: int, headers: dict[str, str], reason: str | None = None) -> None:
        self.send_response(status, reason)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing; the tests read `asked`."""


class Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Ignore clients that close the connection, as some tests do."""


@contextmanager
def serve() -> Iterator[Site]:
    handler = type("SiteHandler", (Handler,), {})
    with Server(("127.0.0.1", 0), handler) as server:
        handler.site = site = Site(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()
