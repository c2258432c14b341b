"""What stands around a chat: unknown fields, other endpoints, and the headers that tell of limits."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

from adapters.spec import Support
from adapters.types import Operation
from adapters.vocabulary import ResetFormat
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.samples import SMALL, user
from gateway.probe.session import Session, compare

_LIMIT: Final = re.compile(r"(?:rate-?limit|tokenlimit)")
_FORMATS: Final = {
    ResetFormat.GO_DURATION: re.compile(r"(?:\d+(?:\.\d+)?(?:ms|h|m|s))+\Z"),
    ResetFormat.FLOAT_SECONDS: re.compile(r"\d+\.\d+\Z"),
    ResetFormat.SECONDS: re.compile(r"\d+\Z"),
}


async def unknown_fields(session: Session) -> AsyncIterator[Finding]:
    """Whether fields the provider does not know are refused; much else follows from that, so it comes first."""
    facts = session.spec.transport.unknown_body_fields
    top = await session.chat({"x_probe": 1})
    inside = await session.chat(messages=[{**user(), "x_probe": 1}])
    fact = "transport.unknown_body_fields"
    says = f"{facts.support.value}{', inside messages too' if facts.nested else ''}"
    contested = facts.support is Support.UNKNOWN
    for seen in (top, inside):
        if not (seen.taken or seen.refused):
            yield not_settled(fact, says, f"{seen.words}: {seen.complaint()}", contested)
            return
    session.strict = top.refused
    told = f"{top.words}; inside messages {inside.words}"
    if top.refused is facts.only_known and inside.refused is facts.nested:
        if top.refused and facts.status is not None and top.status != facts.status:
            override: dict[str, Any] = {"transport": {"unknown_body_fields": {"status": top.status}}}
            yield differs(fact, f"{says} with {facts.status}", told, override, contested)
        else:
            yield holds(fact, says, told, contested)
        return
    entry = {"support": "rejected" if top.refused else "ignored", "nested": inside.refused}
    yield differs(fact, says, told, {"transport": {"unknown_body_fields": entry}}, contested)


async def endpoints(session: Session) -> AsyncIterator[Finding]:
    """The list of models and text completions."""
    spec = session.spec
    models = spec.endpoints.get("models")
    if models is not None and models.path is not None:
        seen = await session.send("GET", models.path, b"")
        listed = isinstance(seen.decoded, (dict, list))
        expected = models.available if models.support is not Support.CONDITIONAL else None
        told = "answers" if seen.status == 200 and listed else f"HTTP {seen.status}"
        if expected is None or expected is (seen.status == 200):
            yield holds("endpoints.models", models.support.value, told)
        elif seen.status == 200 or seen.refused:
            entry = {"support": "native" if seen.status == 200 else "absent", "path": models.path}
            yield differs("endpoints.models", models.support.value, told, {"endpoints": {"models": entry}})
        else:
            yield not_settled("endpoints.models", models.support.value, seen.words)
    completions = spec.endpoints.get(Operation.COMPLETIONS)
    if completions is not None and session.limit_name is not None:
        path = completions.path or "/completions"
        body = {"model": session.target.model, "prompt": "Say exactly: ok", "max_tokens": SMALL}
        seen = await session.post(Operation.COMPLETIONS, body, path)
        override = {"endpoints": {"completions": {"support": "native" if seen.taken else "absent", "path": path}}}
        expected = completions.available if completions.support is not Support.CONDITIONAL else None
        yield compare("endpoints.completions", expected, seen, override)


async def headers(session: Session) -> AsyncIterator[Finding]:
    """The headers of all answers so far; nothing is sent for them."""
    facts = session.spec.rate_limit_headers
    found = {name: value for seen in session.answers for name, value in seen.headers.items()}
    sent = sorted(name for name in found if _LIMIT.search(name))
    says = ", ".join(facts.headers) or "none"
    unknown = [name for name in sent if name not in facts.headers]
    if not sent and facts.headers:
        yield not_settled("rate_limit_headers.headers", says, "none of them came")
    elif unknown:
        all_of_them = {"rate_limit_headers": {"headers": [*facts.headers, *unknown]}}
        yield differs("rate_limit_headers.headers", says, ", ".join(sent), all_of_them)
    else:
        yield holds("rate_limit_headers.headers", says, ", ".join(sent) or "none")
    resets = [found[limit.reset] for limit in facts.limits if limit.reset is not None and limit.reset in found]
    if resets and facts.reset_format is not None:
        fitting = {name for name, form in _FORMATS.items() if all(form.match(value) for value in resets)}
        whole = fitting == {ResetFormat.SECONDS} and facts.reset_format is ResetFormat.FLOAT_SECONDS
        told = ", ".join(resets)
        if facts.reset_format in fitting or whole:
            yield holds("rate_limit_headers.reset_format", facts.reset_format.value, told)
        elif fitting:
            override = {"rate_limit_headers": {"reset_format": next(iter(fitting)).value}}
            yield differs("rate_limit_headers.reset_format", facts.reset_format.value, told, override)
        else:
            yield not_settled("rate_limit_headers.reset_format", facts.reset_format.value, f"no known format: {told}")
