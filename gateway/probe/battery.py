"""The battery: every check in order, against whatever answers, and what it costs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.simulator.engine import Simulator
from adapters.simulator.options import Options
from adapters.simulator.wire import Request
from adapters.target import Target
from gateway.probe.answers import answers
from gateway.probe.around import endpoints, headers, unknown_fields
from gateway.probe.combinations import combinations
from gateway.probe.finding import Finding
from gateway.probe.formats import formats
from gateway.probe.messages import messages
from gateway.probe.parameters import parameters
from gateway.probe.refusals import refusals
from gateway.probe.samples import SMALL
from gateway.probe.seen import Seen
from gateway.probe.session import LIMIT_NAMES, Send, Session, UnreachableError
from gateway.probe.streams import streams
from gateway.probe.values import values

_CHECKS: Final[tuple[tuple[Callable[[Session], AsyncIterator[Finding]], tuple[str, ...]], ...]] = (
    (unknown_fields, ("",)),
    (parameters, ("params", "messages", "conflicts", "streaming", "reasoning", "finish_reason")),
    (values, ("params",)),
    (formats, ("params.response_format", "params.tools")),
    (messages, ("messages",)),
    (combinations, ("conflicts",)),
    (streams, ("streaming", "reasoning", "params.logprobs", "finish_reason")),
    (answers, ("params.logprobs", "reasoning", "finish_reason")),
    (refusals, ("errors", "context")),
    (endpoints, ("endpoints",)),
    (headers, ("rate_limit_headers",)),
)
"""The checks in order, and the facts that cannot be told without each. Much follows from what unknown fields do."""
_NANO_A_TOKEN: Final = 1000  # pico-USD in one nano-USD


async def probe(target: Target, send: Send, wanted: Sequence[str] = ()) -> list[Finding]:
    """All findings, the contested ones first; raises `UnreachableError` where no chat is answered at all.

    With *wanted*, names of facts, what none of them needs is not asked.
    """
    session = Session(target, send, strict=target.spec.transport.unknown_body_fields.only_known, wanted=tuple(wanted))
    await _reach(session)
    checks = [check for check, facts in _CHECKS if any(session.wants(fact) for fact in facts)]
    found = [finding for check in checks async for finding in check(session)]
    return sorted(found, key=lambda finding: not finding.contested)


async def _reach(session: Session) -> None:
    """Find out how to keep answers short, by the plainest request there is."""
    known = [name for name in LIMIT_NAMES if session.means(name)]
    seen: Seen | None = None
    for name in (*known, *(name for name in LIMIT_NAMES if name not in known)):
        session.limit_name = name
        seen = await session.chat({name: SMALL})
        if seen.taken:
            session.base = seen
            return
        if not seen.refused or seen.status == 404:
            break
    raise UnreachableError(f"{seen.words}: {seen.complaint()}" if seen is not None else "nothing could be asked")


@dataclass(slots=True)
class Bill:
    """What a run of the battery takes; tokens are an estimate."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    facts: frozenset[str] = frozenset()
    """What is asked for."""

    def cost_nusd(self, target: Target) -> int | None:
        """The cost in nano-USD; None without a price."""
        if target.price is None:
            return None
        price = target.price
        pico = self.prompt_tokens * price.input_ptoken + self.completion_tokens * price.output_ptoken
        return pico // _NANO_A_TOKEN


async def rehearse(target: Target, wanted: Sequence[str] = ()) -> Bill:
    """What probing *target* will take, by probing a simulation of it; nothing leaves the process."""
    bill = Bill()
    play = simulation(target)

    async def send(method: str, path: str, body: bytes) -> Seen:
        seen = await play(method, path, body)
        bill.requests += 1
        bill.prompt_tokens += len(body) // 4
        if seen.status == 200 and method == "POST":
            bill.completion_tokens += _limit(body)
        return seen

    bill.facts = frozenset(finding.fact for finding in await probe(target, send, wanted))
    return bill


def simulation(target: Target, simulator: Simulator | None = None) -> Send:
    """Sends to a simulator in this process: one of the target's own facts, unless another is given."""
    played = simulator or Simulator(target.spec, Options(models=(target.model,), context_window=target.context_window))
    auth = played.spec.transport.auth
    key = {auth.header.lower(): auth.header_value(played.key)} if played.key is not None else {}

    async def send(method: str, path: str, body: bytes) -> Seen:
        answer = played.handle(Request(method, f"{played.base_path}{path}", key, body))
        pieces = [step for step in answer.steps if isinstance(step, bytes)]
        return Seen(answer.status, dict(answer.headers), b"".join(pieces))

    return send


def _limit(body: bytes) -> int:
    sent = json.loads(body)
    found = [sent[name] for name in LIMIT_NAMES if isinstance(sent.get(name), int)]
    return min(found[0] if found else SMALL, 512) * (sent.get("n") or 1)


__all__ = ["Bill", "UnreachableError", "probe", "rehearse", "simulation"]
