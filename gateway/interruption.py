"""Ctrl-C and SIGTERM where no server looks after them: the command ends within two seconds, whatever it waits for."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Generator
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    import asyncio

_Result = TypeVar("_Result")
_LoopFactory = Callable[[], "asyncio.AbstractEventLoop"] | None

_GRACE_SECONDS: Final = 1.5
"""For undoing what was under way. Whatever has not ended by then is left to the system: locks, sockets and children."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def exit_code(number: int) -> int:
    """What a shell shows of a process that the signal *number* has ended: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + number


def told(number: int) -> str:
    """What to say to who has sent the signal."""
    return f"stopped by {signal.Signals(number).name}"


def leave_soon(number: int) -> None:
    """End the process with the signal's exit code unless it ends by itself within the grace."""
    timer = threading.Timer(_GRACE_SECONDS, _leave, (number,))
    timer.daemon = True
    timer.start()


@contextlib.contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None]) -> Generator[None, None, None]:
    """Have *handler* called for both signals within the block; what was there before comes back after it."""
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class Interruptions:
    """Looks after the two signals within a ``with`` block of the main thread; a server may lay its handlers over these.

    The first signal interrupts: what `run` runs is cancelled, all else meets a `KeyboardInterrupt`. A second one ends
    the process at once.
    """

    current: Interruptions | None = None
    """The one in force, if any."""

    def __init__(self) -> None:
        self.number: int | None = None
        """The signal that came."""
        self._task: asyncio.Task[Any] | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruptions:
        self._before = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        if sys.platform != "win32":
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
            # Handlers of Python wait until C code returns, and looking a name up may take half a minute there.
            threading.Thread(target=self._watch, args=(reader,), name="signals", daemon=True).start()
        Interruptions.current = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        Interruptions.current = None
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if sys.platform != "win32" and (writer := signal.set_wakeup_fd(-1)) != -1:
            os.close(writer)  # which ends the thread

    def run(self, work: Coroutine[Any, Any, _Result], loop_factory: _LoopFactory = None) -> _Result:
        """The result of *work* in an event loop of its own; `KeyboardInterrupt` when a signal has cancelled it."""
        import asyncio

        async def main() -> _Result:
            self._task = asyncio.current_task()
            try:
                return await work
            finally:
                self._task = None

        try:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                return runner.run(main())
        except asyncio.CancelledError:
            if self.number is None:
                raise
            raise KeyboardInterrupt from None

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.number is not None:
            _leave(number)
        self.number = number
        leave_soon(number)
        if self._task is None:
            raise KeyboardInterrupt
        # Handlers run between any two instructions: what the loop is at must not see half of it.
        self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _watch(self, reader: int) -> None:
        while numbers := os.read(reader, 1):
            # A server has handlers of its own, and takes its time.
            if numbers[0] in _SIGNALS and signal.getsignal(numbers[0]) == self._handle:
                leave_soon(numbers[0])
        os.close(reader)


def run(work: Coroutine[Any, Any, _Result], loop_factory: _LoopFactory = None) -> _Result:
    """As `Interruptions.run`; without one in force, as `asyncio.run`."""
    return (Interruptions.current or Interruptions()).run(work, loop_factory)


def _leave(number: int) -> None:
    # Neither the streams nor the interpreter's own way out are to be trusted: they may be what hangs.
    with contextlib.suppress(OSError):
        os.write(2, f"{told(number)}\n".encode())
    os._exit(exit_code(number))
