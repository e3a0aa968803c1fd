"""A web server on this machine that misbehaves as told, and remembers what it was asked for."""

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
    """One address; every deviation from a good server is an option."""

    content: bytes = b""
    status: int = 200
    location: str = ""  # redirect there
    ranges: bool = True  # answers requests for a part
    etag: str = '"1"'
    length: bool = True  # says how much will come
    cuts: list[int] = field(default_factory=list)  # bytes after which each of the next answers is cut
    delay: float = 0.0  # seconds before the content, or
    stall: int = 0  # ... after so many bytes of it
    shift: int = 0  # answers with another part than was asked for


@dataclass
class Site:
    address: str
    pages: dict[str, Page] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)  # path and Range of each request

    def put(self, name: str, content: bytes = b"", **options: object) -> str:
        self.pages[f"/{name}"] = Page(content, **options)  # type: ignore[arg-type]
        return f"{self.address}/{name}"

    def ranges(self) -> list[str]:
        return [asked for _, asked in self.asked]


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        asked = self.headers.get("Range", "")
        self.site.asked.append((self.path, asked))
        page = self.site.pages.get(self.path, Page(status=404))
        start = self._start(page, asked)
        if start is not None and start >= len(page.content):
            self._head(416, {"Content-Length": "0"})
            return
        start = None if start is None else start + page.shift
        body = page.content[start or 0 :]
        headers = {"ETag": page.etag} | ({"Location": page.location} if page.location else {})
        headers |= {"Content-Length": str(len(body))} if page.length else {}
        if start is not None:
            headers["Content-Range"] = f"bytes {start}-{len(page.content) - 1}/{len(page.content)}"
        self._head(206 if start is not None else page.status, headers)
        self.wfile.write(body[: page.stall])
        time.sleep(page.delay)
        body = body[page.stall :]
        self.wfile.write(body[: page.cuts.pop(0)] if page.cuts else body)
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def _start(self, page: Page, asked: str) -> int | None:
        match = re.fullmatch(r"bytes=(\d+)-", asked)
        unchanged = self.headers.get("If-Range", page.etag) == page.etag
        return int(match[1]) if match and page.ranges and unchanged and page.status == 200 else None

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quiet: the tests read `asked`."""


class Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that gave up is what some tests want."""


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
