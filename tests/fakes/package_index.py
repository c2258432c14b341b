"""A package index on a loopback port with one wheel, which can break off downloads and counts what it is asked for."""

from __future__ import annotations

import contextlib
import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType


def make_wheel(name: str, version: str, member: str, content: bytes) -> bytes:
    """The bytes of a wheel that an installer accepts."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"{member},,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return buffer.getvalue()


class PackageIndex:
    """Serves while the ``with`` block runs."""

    def __init__(self, name: str, version: str, wheel: bytes) -> None:
        self.wheel = wheel
        self.file_name = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        self.break_off_after: int | None = None
        """Bytes of the wheel after which a download ends; once, then it is None again."""
        self.honours_ranges = True
        self.wheel_requests: list[str | None] = []
        """The Range header of each download."""
        index = self
        page = f'<a href="/files/{self.file_name}#sha256={hashlib.sha256(wheel).hexdigest()}">{self.file_name}</a>'

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path == f"/simple/{name}/":
                    self._answer(200, page.encode(), "text/html")
                elif self.path == f"/files/{index.file_name}":
                    self._send_wheel()
                else:
                    self._answer(404, b"", "text/plain")

            def _send_wheel(self) -> None:
                asked = self.headers.get("range")
                index.wheel_requests.append(asked)
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and index.honours_ranges else 0
                if start and start >= len(wheel):
                    self._answer(416, b"", "text/plain")
                    return
                limit, index.break_off_after = index.break_off_after, None
                self._answer(206 if start else 200, wheel[start:], "application/octet-stream", limit)

            def _answer(self, status: int, body: bytes, content_type: str, limit: int | None = None) -> None:
                self.send_response(status)
                self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # whoever asked has left
                    self.wfile.write(body[:limit])

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/simple"

    @property
    def wheel_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/files/{self.file_name}"

    def __enter__(self) -> PackageIndex:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
