"""Writes log lines from a thread of its own, so that a blocked terminal or pipe never stops the event loop."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO, TypeAlias

Entry: TypeAlias = "str | Callable[[], str]"
"""Lines with their newlines, or what makes them; made in the writing thread, off the hot path."""

QUEUE_LINES = 10_000
_BATCH_LINES = 500
_GATHER_SECONDS = 0.02
"""What comes within this time of a first line is written with it: waking a thread costs as much as many lines."""


class LineSink:
    """A bounded queue in front of a stream. When it is full the oldest lines are dropped, and counted."""

    def __init__(self, stream: TextIO, queue_lines: int = QUEUE_LINES) -> None:
        self._stream = stream
        self._queue_lines = queue_lines
        self._entries: deque[tuple[Entry, int]] = deque()
        self._lines = 0
        """Those of all entries."""
        self._lock = threading.RLock()  # collecting garbage may log, whatever is under way
        self._wake = threading.Event()
        self._closing = threading.Event()
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
        self._thread.start()

    def put(self, entry: Entry, lines: int = 1) -> None:
        """Queue an entry of so many *lines*; never waits for the stream."""
        queued = entry, lines
        with self._lock:
            self._entries.append(queued)
            self._lines += lines
            while self._lines > self._queue_lines and len(self._entries) > 1:
                self.dropped += self._pop()[1]
        if not self._wake.is_set():
            self._wake.set()

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Write what is queued and stop; give up after *timeout_seconds* when the stream is blocked."""
        self._closing.set()
        self._wake.set()
        self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while not (self._closing.is_set() and not self._entries):
            self._wake.wait()
            self._closing.wait(_GATHER_SECONDS)
            # Cleared before draining: a line queued meanwhile sets it again, so none waits for the next one.
            self._wake.clear()
            while self._entries:
                self._write_batch()

    def _pop(self) -> tuple[Entry, int]:
        entry, lines = self._entries.popleft()
        self._lines -= lines
        return entry, lines

    def _write_batch(self) -> None:
        texts: list[str] = []
        taken = 0
        while self._entries and taken < _BATCH_LINES:
            with self._lock:
                entry, lines = self._pop()
            taken += lines
            try:
                texts.append(entry if isinstance(entry, str) else entry())
            except Exception as error:  # noqa: BLE001 - a line that cannot be made must not end all logging
                lost = {"event": "log lines could not be made", "lines": lines, "error": type(error).__name__}
                texts.append(json.dumps(lost) + "\n")
        try:
            self._stream.write("".join(texts))
            self._stream.flush()
        except (OSError, ValueError):
            # The reader has gone or the stream is closed: nobody is left to tell.
            with self._lock:
                self.dropped += taken
