"""Writes log lines from a thread of its own, so that a blocked terminal or pipe never stops the event loop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO, TypeAlias

Entry: TypeAlias = "str | Callable[[], str]"
"""A line with its newline, or what makes one; made in the writing thread, off the hot path."""

QUEUE_LINES = 10_000
_BATCH_LINES = 500


class LineSink:
    """A bounded queue in front of a stream. When it is full the oldest line is dropped, and counted."""

    def __init__(self, stream: TextIO, queue_lines: int = QUEUE_LINES) -> None:
        self._stream = stream
        self._entries: deque[Entry] = deque(maxlen=queue_lines)
        self._wake = threading.Event()
        self._closing = False
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def put(self, entry: Entry) -> None:
        """Queue a line; never waits."""
        if len(self._entries) == self._entries.maxlen:
            self.dropped += 1
        self._entries.append(entry)
        if not self._wake.is_set():
            self._wake.set()

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Write what is queued and stop; give up after *timeout_seconds* when the stream is blocked."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while not (self._closing and not self._entries):
            self._wake.wait()
            # Cleared before draining: a line queued meanwhile sets it again, so none waits for the next one.
            self._wake.clear()
            while self._entries:
                self._write_batch()

    def _write_batch(self) -> None:
        lines: list[str] = []
        while self._entries and len(lines) < _BATCH_LINES:
            entry = self._entries.popleft()
            try:
                lines.append(entry if isinstance(entry, str) else entry())
            except Exception as error:  # noqa: BLE001 - one line that cannot be made must not end all logging
                lines.append(f'{{"event": "a log line could not be made", "error": "{type(error).__name__}"}}\n')
        try:
            self._stream.write("".join(lines))
            self._stream.flush()
        except (OSError, ValueError):
            # The reader has gone or the stream is closed: nobody is left to tell.
            self.dropped += len(lines)
