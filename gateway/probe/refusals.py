"""How the provider says no: the envelope, the cases that are cheap to bring about, and prompts that are too long."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from adapters.failures import from_response, read_error
from adapters.spec import ErrorCaseSpec
from adapters.types import FailureKind
from adapters.vocabulary import Envelope, Overflow
from gateway.probe.finding import Finding, differs, holds, not_settled
from gateway.probe.samples import user
from gateway.probe.seen import Seen
from gateway.probe.session import Session

_NO_MODEL: Final = "no-such-model-probe"
_MISSING: Final = ("model_missing", "model_missing_or_no_access")
_LONGEST_PROMPT: Final = 40_960
"""Tokens of a context that is filled to see what happens; a larger one would cost too much."""


async def refusals(session: Session) -> AsyncIterator[Finding]:
    """Findings on error bodies and cases."""
    wrong = await session.chat({"temperature": "hot"})
    missing = await session.chat({"model": _NO_MODEL})
    yield _envelope(session, [seen for seen in (wrong, missing) if seen.refused])
    case = next((one for one in session.spec.errors.cases if one.case == "validation"), None)
    if case is not None:
        yield _case(session, case, wrong)
    gone = next((one for one in session.spec.errors.cases if one.case in _MISSING), None)
    if gone is not None:
        yield _case(session, gone, missing)
    yield await _overflow(session)


def envelopes(decoded: Any) -> set[Envelope]:
    """The shapes an error body could be meant as."""
    if not isinstance(decoded, dict):
        return set()
    error = decoded.get("error")
    if isinstance(error, str):
        return {Envelope.ERROR_TYPE} if "error_type" in decoded else {Envelope.STRING}
    if isinstance(error, dict):
        if error.get("object") == "error":
            return {Envelope.NESTED_OBJECT}
        return {Envelope.INTEGER_CODE} if isinstance(error.get("code"), int) else {Envelope.OPENAI}
    if "detail" in decoded:
        return {Envelope.DETAIL}
    if "message" in decoded:
        return {Envelope.FLAT_OBJECT} if decoded.get("object") == "error" else {Envelope.FLAT}
    return set()


def _envelope(session: Session, seen: list[Seen]) -> Finding:
    errors = session.spec.errors
    found = set.union(set(), *(envelopes(one.decoded) for one in seen))
    says = ", ".join(one.value for one in (errors.envelope, *errors.also))
    if not found:
        return not_settled("errors.envelope", says, "no refusal had a body that could be read")
    told = ", ".join(sorted(one.value for one in found))
    if found <= {errors.envelope, *errors.also}:
        return holds("errors.envelope", says, told)
    new = sorted(found - {errors.envelope})
    return differs("errors.envelope", says, told, {"errors": {"envelope": new[0].value}})


def _case(session: Session, case: ErrorCaseSpec, seen: Seen) -> Finding:
    fact = f"errors.cases.{case.case}"
    says = _told(case.status, case.type, (case.code,) if case.code else ())
    if seen.taken:
        return not_settled(fact, says, "it was taken")
    if not seen.refused:
        return not_settled(fact, says, f"{seen.words}: {seen.complaint()}")
    fields = read_error(seen.body)
    kind, code = (fields.type, fields.code) if fields is not None else ("", "")
    told = _told((seen.status,), (kind,) if kind else (), (code,) if code else ())
    wrong: dict[str, Any] = {}
    if case.status and seen.status not in case.status:
        wrong["status"] = [seen.status]
    if case.type and kind and kind not in case.type:
        wrong["type"] = [kind]
    if case.code and code and code != case.code:
        wrong["code"] = code
    if not wrong:
        return holds(fact, says, told)
    # A list is replaced whole.
    cases = [
        one.model_dump(mode="json", exclude_unset=True, exclude={"src", "conf", "note", "facts"})
        | (wrong if one is case else {})
        for one in session.spec.errors.cases
    ]
    return differs(fact, says, told, {"errors": {"cases": cases}})


def _told(statuses: tuple[int, ...], types: tuple[str, ...], codes: tuple[str, ...]) -> str:
    return " ".join(filter(None, ("/".join(map(str, statuses)), "/".join(types), "/".join(codes))))


async def _overflow(session: Session) -> Finding:
    """What becomes of a prompt and a limit that do not fit the context together."""
    context = session.spec.context
    says = context.overflow.value + (", an error when asked for" if context.ask_for_error else "")
    window = session.target.context_window
    most = session.target.max_output_tokens
    if window is None:
        return not_settled("context.overflow", says, "the size of its context is not known")
    filled = window <= _LONGEST_PROMPT
    if filled:
        seen = await session.chat(context.ask_for_error, [user("word " * (window + 64))])
    elif most is None or most >= window:
        seen = await session.chat({session.limit_name or "max_tokens": window, **context.ask_for_error})
    else:
        return not_settled("context.overflow", says, f"it would take a prompt of {window} tokens")
    expected = context.overflow is Overflow.ERROR or bool(context.ask_for_error)
    if not (seen.taken or seen.refused):
        return not_settled("context.overflow", says, f"{seen.words}: {seen.complaint()}")
    if seen.taken:
        if not expected:
            return holds("context.overflow", says, seen.words)
        if not filled and not session.spec.hosted:
            why = f"it may look at the prompt alone, and {window} tokens are too many to send"
            return not_settled("context.overflow", says, why)
        # That the parameter which asks for an error does nothing is more than `overrides` can say.
        override = {} if context.ask_for_error else {"context": {"overflow": Overflow.LOWERS_LIMIT.value}}
        return differs("context.overflow", says, seen.words, override)
    if not expected:
        return differs("context.overflow", says, seen.words, {"context": {"overflow": Overflow.ERROR.value}})
    kind = from_response("it", seen.status, seen.headers, seen.body, str, session.spec.errors.cases).kind
    if kind is FailureKind.CONTEXT_LENGTH:
        return holds("context.overflow", says, f"{seen.words}, and understood")
    return not_settled("context.overflow", says, f"{seen.words} in words that are not understood: {seen.complaint()}")
