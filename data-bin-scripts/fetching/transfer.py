"""Make one attempt at one address to fetch a file, or the rest of a file that an earlier attempt began."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass

import requests
import urllib3
from tqdm import tqdm

from .errors import DiskFullError, MirrorError, OverLimitError, clear_when_full
from .partial import Origin, Partial
from .sources import Source

CHUNK = 1 << 16  # bytes; a timeout in the middle of a chunk loses it
LENGTH = re.compile(r"[0-9]{1,18}")  # a Content-Length; Python also reads other digits, but no 4,301 of them
TEMPORARY = {408, 425, 429, 500, 502, 503, 504}  # HTTP status codes after which a later attempt may succeed


class CutError(Exception):
    """Report that the transfer ended early; the next attempt may resume it."""


@dataclass(frozen=True)
class Policy:
    retries: int  # attempts in a row without a new byte, after the first one
    timeout: float  # seconds without a byte
    most: int | None = None  # bytes that --limit still allows; None: no limit


@dataclass(frozen=True)
class Transfer:
    url: str
    source: Source
    partial: Partial
    policy: Policy

    def attempt(self) -> None:
        """Fetch the rest of the partial file.

        Raises:
            CutError: The transfer ended early; all received bytes are kept in the partial file.
            MirrorError: The server does not deliver the file.
        """
        resumed = self._resumable()
        if resumed and resumed.total == self.partial.size():
            return  # an earlier run ended after the last byte, before the check
        try:
            with requests.get(
                self.url, headers=self._headers(resumed), stream=True, timeout=self.policy.timeout
            ) as response:
                fits = self._take(response, resumed)
        except (requests.exceptions.SSLError, requests.TooManyRedirects) as error:
            raise MirrorError(str(error)) from error
        except (ValueError, OverflowError) as error:  # an address, or one to which the server redirects
            raise MirrorError(f"the address, or one of its redirects, cannot be used ({printable(error)})") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise CutError(self._brief(error)) from error
        if not fits:  # the file on the server has changed since the partial file was begun
            self.partial.remove()
            self.attempt()

    def _resumable(self) -> Origin | None:
        """Return the origin of the partial file if the download can be resumed, otherwise None.

        The partial file must come from the address of this transfer. An ETag, a modification date or a published hash
        must also reveal whether the file on the server has changed.
        """
        origin = self.partial.origin()
        is_change_noticed = origin is not None and (origin.validator or self.source.is_hash_published)
        return origin if origin and origin.url == self.url and is_change_noticed else None

    def _headers(self, resumed: Origin | None) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity", "User-Agent": "fairseq_posenc/fetch"}
        if resumed:
            headers["Range"] = f"bytes={self.partial.size()}-"
        if resumed and resumed.validator:
            headers["If-Range"] = resumed.validator
        return headers

    def _take(self, response: requests.Response, resumed: Origin | None) -> bool:
        """Write the body of a response into the partial file.

        Returns:
            Whether the body was written; False if the response does not continue the partial file as requested.
        """
        status = response.status_code
        reason = printable(response.reason)
        if status in TEMPORARY:
            raise CutError(f"HTTP {status} {reason}")
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity" and not self.source.name.endswith(("gz", ".Z")):  # servers call archives encoded
            raise MirrorError(
                f"the server sends the file with the content encoding {printable(encoding)}, which was not requested"
            )
        if status == 200:  # the whole file; servers may ignore the request for a part
            self._receive(response, _origin(self.url, response), 0)
        elif resumed and _continues(response, self.partial.size(), resumed):
            self._receive(response, resumed, self.partial.size())
        elif status not in (206, 416) or not resumed:
            raise MirrorError(f"HTTP {status} {reason}")
        else:
            return False
        return True

    def _receive(self, response: requests.Response, origin: Origin, offset: int) -> None:
        self._judge(origin, offset)
        bar = {"unit": "B", "unit_scale": True, "desc": self.source.name, "disable": None, "leave": False}
        full = clear_when_full(self.partial.path, origin.total)
        with full, tqdm(total=origin.total, initial=offset, **bar) as progress:
            if not offset:
                self.partial.begin(origin)
            with self.partial.path.open("ab") as file:
                for chunk in response.raw.stream(CHUNK, decode_content=False):
                    file.write(chunk)
                    progress.update(len(chunk))
                    self._stop_beyond(file.tell())
        self._compare(origin.total)

    def _judge(self, origin: Origin, offset: int) -> None:
        """Raise an error before the transfer if the announced size is wrong, or exceeds --limit or the free space."""
        if origin.total is None:
            return
        size, most = self.source.size, self.policy.most
        if size not in (None, origin.total):
            raise MirrorError(
                f"the size is wrong: the server announces {origin.total:,} bytes, but the published size is {size:,}"
            )
        if most is not None and origin.total > most:
            raise OverLimitError(
                f"{self.source.path}: the file is skipped, because it has more bytes than --limit still allows"
            )
        missing, free = origin.total - offset, shutil.disk_usage(self.partial.path.parent).free
        if missing > free:
            raise DiskFullError(
                f"{self.partial.path}: the download needs {missing:,} more bytes, but only {free:,} bytes are free. "
                "Free some space, or choose another disk with --output."
            )

    def _compare(self, announced: int | None) -> None:
        """Raise an error if the server sent more or fewer bytes than it announced (None: it announced nothing)."""
        self.partial.check_folder()
        received = self.partial.size()
        if announced is not None and received < announced:
            raise CutError(f"the server sent {received:,} bytes, but announced {announced:,}")
        if announced is not None and received > announced:
            self.partial.remove()
            raise MirrorError(f"the server sent {received:,} bytes, but announced {announced:,}")

    def _stop_beyond(self, received: int) -> None:
        """Stop a transfer that exceeds the published size or --limit; not all servers announce the size."""
        if self.source.size is not None and received > self.source.size:
            self.partial.remove()
            raise MirrorError(f"the size is wrong: the server sends more than the published {self.source.size:,} bytes")
        if self.policy.most is not None and received > self.policy.most:
            self.partial.remove()
            raise OverLimitError(
                f"{self.source.path}: the file is skipped, because it has more bytes than --limit still allows"
            )

    def _brief(self, error: Exception) -> str:
        if isinstance(error, (requests.Timeout, urllib3.exceptions.TimeoutError)):
            return f"the server did not answer for {self.policy.timeout:g} seconds (--timeout)"
        if isinstance(error, requests.ConnectionError):
            return "the connection failed"
        return f"the connection was lost ({type(error).__name__})"


def _continues(response: requests.Response, offset: int, origin: Origin) -> bool:
    part = response.headers.get("Content-Range", "")
    total = origin.total if origin.total is not None else "*"
    return response.status_code == 206 and part.startswith(f"bytes {offset}-") and part.endswith(f"/{total}")


def _origin(url: str, response: requests.Response) -> Origin:
    etag = response.headers.get("ETag", "")
    validator = etag if etag.startswith('"') else response.headers.get("Last-Modified", "")  # weak ETags begin with W/
    length = response.headers.get("Content-Length")
    if length is not None and not LENGTH.fullmatch(length):
        raise MirrorError(f"the server announces the size {printable(length)}, which is not a number of bytes")
    return Origin(url, validator, None if length is None else int(length))


def printable(text: object) -> str:
    """Return a text from a server, cut to 80 characters, with `?` in place of unprintable characters."""
    shown = "".join(character if character.isprintable() else "?" for character in str(text))
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
