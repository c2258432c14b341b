"""Remembers what names resolve to, so that a busy gateway neither waits for DNS nor asks it all the time."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

# An answer serves for up to KEEP seconds; once older than REFRESH, its next use also asks anew, in the background.
REFRESH_SECONDS = 5.0
KEEP_SECONDS = 60.0
KEEP_FAILURE_SECONDS = 5.0

MAX_NAMES = 1024

# Family and socket address, as socket.connect takes it.
Address = tuple[int, Any]

LookUp = Callable[[str, int], Awaitable[list[Address]]]


@dataclass(slots=True)
class _Answer:
    at: float
    addresses: list[Address]
    error: socket.gaierror | None = None


class Resolver:
    """Looks names up off the loop; one question at a time for each name."""

    def __init__(self, look_up: LookUp | None = None) -> None:
        self._look_up_name = look_up or _ask_the_system
        self._answers: dict[tuple[str, int], _Answer] = {}
        self._questions: dict[tuple[str, int], asyncio.Task[_Answer]] = {}

    async def resolve(self, host: str, port: int) -> list[Address]:
        """The addresses of *host*, families in turn, or ``socket.gaierror``, which is remembered for a while too."""
        literal = _literal(host, port)
        if literal is not None:
            return [literal]
        name = (host, port)
        answer = self._answers.get(name)
        age = asyncio.get_running_loop().time() - answer.at if answer is not None else 0.0
        if answer is None or age > (KEEP_SECONDS if answer.error is None else KEEP_FAILURE_SECONDS):
            # Shielded: the question goes on for the others when one of those waiting is cancelled.
            question = self._ask(name)
            try:
                answer = await asyncio.shield(question)
            except asyncio.CancelledError:
                if question.cancelled():
                    raise socket.gaierror(socket.EAI_AGAIN, "the resolver was closed") from None
                raise
        elif age > REFRESH_SECONDS:
            self._ask(name)
        if answer.error is not None:
            raise socket.gaierror(*answer.error.args)
        return answer.addresses

    def distrust(self, host: str, port: int) -> None:
        """None of the addresses answered: ask again before the next use, unless the answer is fresh."""
        answer = self._answers.get((host, port))
        if answer is not None and asyncio.get_running_loop().time() - answer.at > REFRESH_SECONDS:
            del self._answers[host, port]

    def close(self) -> None:
        for question in self._questions.values():
            question.cancel()
        self._questions.clear()
        self._answers.clear()

    def _ask(self, name: tuple[str, int]) -> asyncio.Task[_Answer]:
        question = self._questions.get(name)
        if question is None:
            question = self._questions[name] = asyncio.get_running_loop().create_task(self._look_up(*name))
        return question

    async def _look_up(self, host: str, port: int) -> _Answer:
        loop = asyncio.get_running_loop()
        name = (host, port)
        try:
            answer = _Answer(loop.time(), _in_turn(await self._look_up_name(host, port)))
        except (OSError, UnicodeError) as error:
            # UnicodeError is what Python says to a name that cannot be one.
            gaierror = error if isinstance(error, socket.gaierror) else socket.gaierror(socket.EAI_FAIL, str(error))
            answer = _Answer(loop.time(), [], gaierror)
        finally:
            self._questions.pop(name, None)
        known = self._answers.get(name)
        if answer.error is None or known is None or known.error is not None or loop.time() - known.at > KEEP_SECONDS:
            if len(self._answers) >= MAX_NAMES:
                self._answers.clear()
            self._answers[name] = answer
        return answer


def _literal(host: str, port: int) -> Address | None:
    """The address that *host* is, if it is one and no name."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.inet_pton(family, host)
    except (OSError, UnicodeError):
        return None
    return (family, (host, port, 0, 0)) if family == socket.AF_INET6 else (family, (host, port))


async def _ask_the_system(host: str, port: int) -> list[Address]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(info[0], info[4]) for info in found]


def _in_turn(addresses: list[Address]) -> list[Address]:
    """Alternate between the families, beginning with the one the system prefers (RFC 8305 section 4)."""
    by_family: dict[int, list[Address]] = {}
    for address in dict.fromkeys(addresses):
        by_family.setdefault(address[0], []).append(address)
    turns = itertools.zip_longest(*by_family.values())
    return [address for turn in turns for address in turn if address is not None]
