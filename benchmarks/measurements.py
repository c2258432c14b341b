"""What is measured, one procedure a measurement; each gives values by the keys of figures.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from benchmarks.answers import EVENTS
from benchmarks.bodies import SECOND, Body, body
from benchmarks.contestant import Contestant, Via
from benchmarks.loads import Address, Load, Loader, Seen

_EVENT_GAP: Final = 5_000
"""Microseconds between the events of the streams whose costs are taken."""
_SLOW_GAP: Final = 50_000
"""The same where many streams run at a time: 20 events a second each, as models write."""
_STREAM_SECONDS: Final = EVENTS * _SLOW_GAP / SECOND
_ALL_EVENTS: Final = EVENTS + 3
_IDLE_STREAMS: Final = 500
_RESTED: Final = 0.3


@dataclass(frozen=True, slots=True)
class Bench:
    """What all measurements use."""

    loader: Loader
    upstream_port: int
    seconds: float
    rate: float

    def direct(self) -> Address:
        """The upstream without anything before it."""
        return Address(self.upstream_port, "/v1/chat/completions")


@dataclass(slots=True)
class Outcome:
    """What one measurement of one contestant gave."""

    values: dict[str, float] = field(default_factory=dict)
    wrong: int = 0
    remark: str = ""


Procedure = Callable[[Bench, Contestant], Outcome]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One step of a round."""

    name: str
    run: Procedure
    via: Via = Via.PLAIN
    once: bool = False
    """The first round is enough."""


def _cost(
    bench: Bench, contestant: Contestant, *, key: str, kind: Body, via: Via = Via.PLAIN, connections: int = 32
) -> Outcome:
    """The CPU time of a request, or of an event where *kind* is a stream."""
    streams = kind is Body.STREAM
    asked = contestant.body(kind, via, _EVENT_GAP if streams else None)
    seen, spent = _spent(bench, contestant, via, asked, Load(connections, bench.seconds, streams=streams))
    if not seen.answers and not seen.wrong:  # a slow one divides its core among all of them, and ends none in time
        connections //= 8
        seen, spent = _spent(bench, contestant, via, asked, Load(connections, 2 * bench.seconds, streams=streams))
    # At the end each connection waits for an answer, which is half done on average.
    counted = seen.events if streams else seen.answers + connections / 2
    outcome = _outcome(seen)
    if seen.events if streams else seen.answers:
        outcome.values[key] = spent * 1e6 / counted
        if key == "request":
            outcome.values["request rate"] = seen.answers_per_s
    if streams and 0 <= seen.fewest_events < _ALL_EVENTS:
        outcome.remark = outcome.remark or f"a stream of {_ALL_EVENTS} events came as {seen.fewest_events}"
    return outcome


def _spent(bench: Bench, contestant: Contestant, via: Via, asked: bytes, load: Load) -> tuple[Seen, float]:
    """What came of *load*, and the seconds on a core that it took."""
    contestant.settle()
    before = contestant.process.cpu_seconds()
    seen = bench.loader.run(contestant.address(via), asked, load)
    time.sleep(_RESTED)  # what is written after the answer belongs to it
    return seen, contestant.process.cpu_seconds() - before


def _latency(bench: Bench, contestant: Contestant, *, key: str, connections: int, paced: bool) -> Outcome:
    """What the gateway adds to the time of an answer, measured against the upstream right before."""
    load = Load(connections, bench.seconds, rate=bench.rate if paced else 0.0)
    without = bench.loader.run(bench.direct(), body(Body.SMALL, "mock-70b"), load)
    seen = bench.loader.run(contestant.address(Via.PLAIN), contestant.body(Body.SMALL, Via.PLAIN), load)
    outcome = _outcome(seen)
    if seen.answers > seen.wrong:
        outcome.values = {
            f"{key} p50": seen.latency_p50 - without.latency_p50,
            f"{key} p99": seen.latency_p99 - without.latency_p99,
        }
    return outcome


def _streams(bench: Bench, contestant: Contestant, *, count: int) -> Outcome:
    """How many of the events of *count* streams arrive in time, and how soon the first of each does."""
    load = Load(
        count, max(bench.seconds, _STREAM_SECONDS), warmup=_STREAM_SECONDS, spread=_STREAM_SECONDS, streams=True
    )
    asked = contestant.body(Body.STREAM, Via.PLAIN, _SLOW_GAP)
    seen = bench.loader.run(contestant.address(Via.PLAIN), asked, load)
    outcome = _outcome(seen)
    outcome.values[f"streams {count}"] = seen.events_per_s / full_rate(count)
    if seen.first_p99 >= 0:
        outcome.values[f"first {count}"] = seen.first_p99 / 1000
    return outcome


def full_rate(streams: int) -> float:
    """The events a second that *streams* of them would bring if nothing stood in the way."""
    return streams * _ALL_EVENTS / _STREAM_SECONDS


def _idle_streams(bench: Bench, contestant: Contestant) -> Outcome:
    """The memory that a stream takes which has begun and says nothing."""
    before = contestant.process.memory_mb()
    asked = contestant.body(Body.STREAM, Via.PLAIN, 60 * SECOND)
    load = bench.loader.start(contestant.address(Via.PLAIN), asked, Load(_IDLE_STREAMS, 60, streams=True))
    try:
        contestant.settle()
        time.sleep(_RESTED)  # until its allocator has come to rest too
        grown = contestant.process.memory_mb() - before
    finally:
        load.kill()
        load.wait()
    return Outcome({"idle stream": grown * 1024 / _IDLE_STREAMS})


def _warm_up(bench: Bench, contestant: Contestant) -> Outcome:
    """Nothing but a first run, after the memory and the time that were taken before it."""
    outcome = Outcome(
        {
            "idle": contestant.process.memory_mb(),
            "start": contestant.start_seconds,
            "start cpu": contestant.start_cpu_seconds,
        }
    )
    bench.loader.run(contestant.address(Via.PLAIN), contestant.body(Body.SMALL, Via.PLAIN), Load(8, 1))
    asked = contestant.body(Body.STREAM, Via.PLAIN, _EVENT_GAP)
    bench.loader.run(contestant.address(Via.PLAIN), asked, Load(4, 1, streams=True))
    return outcome


def _outcome(seen: Seen) -> Outcome:
    """Without values yet: what was wrong with the answers."""
    if not seen.answers and not seen.events:
        return Outcome(wrong=seen.wrong, remark="no answer in time")
    remark = f"{seen.wrong} of {seen.answers + seen.broken} answers were wrong" if seen.wrong else ""
    return Outcome(wrong=seen.wrong, remark=f"{remark}: {seen.sample.strip()}" if seen.sample else remark)


def measurements(streams: tuple[int, ...]) -> list[Measurement]:
    """All of them in their order, with as many streams at a time as *streams* says."""
    return [
        Measurement("idle", _warm_up, once=True),
        Measurement("idle stream", _idle_streams, once=True),
        Measurement("request", partial(_cost, key="request", kind=Body.SMALL)),
        Measurement("request 25 kB", partial(_cost, key="request 25 kB", kind=Body.LARGE, connections=16)),
        Measurement("request tools", partial(_cost, key="request tools", kind=Body.TOOLS)),
        Measurement("event", partial(_cost, key="event", kind=Body.STREAM, connections=20)),
        *(
            Measurement(key, partial(_cost, key=key, kind=Body.STREAM, via=via, connections=20), via=via)
            for key, via in (
                ("event calls", Via.BARE_CALLS),
                ("event reasoning", Via.REASONING),
                ("event tls", Via.TLS),
            )
        ),
        Measurement("request tls", partial(_cost, key="request tls", kind=Body.SMALL, via=Via.TLS), via=Via.TLS),
        Measurement("alone", partial(_latency, key="alone", connections=1, paced=False)),
        Measurement("paced", partial(_latency, key="paced", connections=8, paced=True)),
        *(Measurement(f"streams {count}", partial(_streams, count=count), once=True) for count in streams),
    ]
