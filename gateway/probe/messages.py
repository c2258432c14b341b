"""Messages: roles, names, parts, what an earlier turn may carry, and the order they stand in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from adapters.spec import Entry
from adapters.vocabulary import MessageRule
from gateway.probe.finding import Finding
from gateway.probe.samples import PIXEL, TOOL, Fragment, user
from gateway.probe.session import Session, compare, is_contested

Message = dict[str, Any]

_SYSTEM: Final = {"role": "system", "content": "Be brief."}
_TOOLS: Final[Fragment] = {"tools": [TOOL]}


async def messages(session: Session) -> AsyncIterator[Finding]:
    """Findings on everything a message may be or hold."""
    facts = session.spec.messages
    yield await _role(session, "system", None)
    yield await _role(session, "developer", facts.developer_role)
    named = {**user(), "name": "probe"}
    yield await _entry(session, "name", facts.name, [named], field="name")
    async for finding in _systems(session):
        yield finding
    async for finding in _content(session):
        yield finding
    async for finding in _earlier_turns(session):
        yield finding
    if session.acts_on("tools"):
        async for finding in _order(session):
            yield finding


async def _role(session: Session, role: str, entry: Entry | None) -> Finding:
    roles = session.spec.messages.roles
    told = [{**_SYSTEM, "role": role}, user()]
    seen = await session.chat(messages=told)
    listed = not roles or role in roles
    expected = session.entry_taken(entry) if entry is not None else listed
    override = _roles_with(roles, role, seen.taken)
    if entry is not None or role == "developer":
        support = "native" if seen.taken else "rejected"
        override[f"{role}_role"] = {"support": support, **({} if seen.taken else {"patch": "map_to_system"})}
    fact = f"messages.{role}_role" if role == "developer" else f"messages.roles.{role}"
    return compare(fact, expected, seen, {"messages": override}, contested=is_contested(entry))


def _roles_with(roles: Sequence[str], role: str, taken: bool) -> dict[str, Any]:
    """What makes a list of roles say whether that one is *taken*; nothing where it does."""
    if taken:
        return {"roles": [*roles, role]} if roles and role not in roles else {}
    return {"roles": [one for one in roles if one != role]}


async def _entry(
    session: Session,
    fact: str,
    entry: Entry | None,
    told: Sequence[Message],
    field: str | None = None,
    params: Fragment | None = None,
) -> Finding:
    """An entry of ``messages``, by messages that hold what it is about; *field* is the member that does."""
    seen = await session.chat(params, messages=told)
    expected = session.entry_taken(entry)
    facts = session.spec.messages
    override: dict[str, Any] = {}
    if field is not None and session.spec.transport.unknown_body_fields.nested and field not in facts.fields.message:
        expected = False
        override["fields"] = {"message": [*facts.fields.message, field]}
    patch = entry.patch.value if entry is not None and entry.patch is not None else "strip"
    override[fact] = {"support": "native"} if seen.taken else {"support": "rejected", "patch": patch}
    return compare(f"messages.{fact}", expected, seen, {"messages": override}, contested=is_contested(entry))


async def _systems(session: Session) -> AsyncIterator[Finding]:
    facts = session.spec.messages
    single = facts.wants_single_system(session.canonical)
    seen = await session.chat(messages=[_SYSTEM, {**_SYSTEM, "content": "Be kind."}, user()])
    yield compare("messages.single_system", not single, seen, {"messages": {"single_system": not single}})
    if not single:
        middle = [user(), {"role": "assistant", "content": "ok"}, _SYSTEM, user()]
        yield await _entry(session, "mid_conversation_system", facts.mid_conversation_system, middle)


async def _content(session: Session) -> AsyncIterator[Finding]:
    facts = session.spec.messages
    text = {"type": "text", "text": "Say exactly: ok"}
    if facts.roles == () or "system" in facts.roles:
        yield await _parts_of(session, "system", [{"role": "system", "content": [text]}, user()])
    yield await _parts_of(session, "user", [{"role": "user", "content": [text]}])
    if facts.wants_string("user"):
        return
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
    for part in (image, sound):
        kind = str(part["type"])
        expected = session.part_taken(kind)
        if expected is None:
            continue
        seen = await session.chat(messages=[{"role": "user", "content": [text, part]}])
        told = "conditional" if seen.taken and kind == "image_url" else "native" if seen.taken else "absent"
        override = {"messages": {"content_parts": {kind: told}}}
        yield compare(f"messages.content_parts.{kind}", expected, seen, override)


async def _parts_of(session: Session, role: str, told: Sequence[Message]) -> Finding:
    """Whether content of that role may be a list of parts."""
    facts = session.spec.messages
    as_string = facts.wants_string(role)
    seen = await session.chat(messages=told)
    roles = facts.roles or ("system", "user", "assistant", "tool")
    wanted = [one for one in roles if (facts.wants_string(one) if one != role else not as_string)]
    override = {"messages": {"content_as_string": wanted or False}}
    return compare(f"messages.content_as_string.{role}", not as_string, seen, override)


async def _earlier_turns(session: Session) -> AsyncIterator[Finding]:
    facts = session.spec.messages
    said: Message = {"role": "assistant", "content": "ok"}

    def after(more: Mapping[str, Any]) -> list[Message]:
        return [user(), {**said, **more}, user()]

    if not session.spec.transport.unknown_body_fields.nested or "tool_calls" in facts.fields.message:
        yield await _entry(session, "null_fields", facts.null_fields, after({"tool_calls": None}))
    if session.acts_on("tools"):
        yield await _entry(session, "empty_tool_calls", facts.empty_tool_calls, after({"tool_calls": []}))
    marked = {**user(), "cache_control": {"type": "ephemeral"}}
    if facts.cache_control is not None:
        yield await _entry(session, "cache_control", facts.cache_control, [marked], field="cache_control")
    for field in ("reasoning", "reasoning_content"):
        yield await _replay(session, field, after({field: "Hm."}))


async def _replay(session: Session, field: str, told: Sequence[Message]) -> Finding:
    """Whether an earlier turn may carry its reasoning back in *field*."""
    facts, replay = session.spec.messages, session.spec.messages.assistant_reasoning_in
    nested = session.spec.transport.unknown_body_fields.nested
    refused = replay is not None and field == replay.reject
    wanted = replay is not None and field in (replay.field, replay.alias)
    expected = wanted or (not refused and (not nested or field in facts.fields.message))
    seen = await session.chat(messages=told)
    override: dict[str, Any] = {}
    if not seen.taken:
        override["assistant_reasoning_in"] = {"reject": field}
        if replay is not None and replay.field == field:
            override["assistant_reasoning_in"] |= {"field": None}
    elif refused or replay is None or replay.field is None:
        override["assistant_reasoning_in"] = {"reject": None, "alias" if replay and replay.field else "field": field}
    else:
        override["assistant_reasoning_in"] = {"alias": field}
    fact = f"messages.assistant_reasoning_in.{field}"
    return compare(fact, expected, seen, {"messages": override})


def _call(name: str) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}


def _calling(name: str) -> Message:
    # With a text, which all of them take; null is asked by itself.
    return {"role": "assistant", "content": "I look.", "tool_calls": [_call(name)]}


def _result(name: str) -> Message:
    return {"role": "tool", "tool_call_id": name, "content": "rain"}


_FIRST, _SECOND = "probe0001", "probe0002"  # nine letters and digits, as some templates demand
_ASKED: Final = user('Call tool get_weather with {"city": "Paris"}')
_BROKEN: Final[Mapping[MessageRule, list[Message]]] = {
    MessageRule.ANSWERED_AT_ONCE: [_ASKED, _calling(_FIRST), user()],
    MessageRule.NO_ORPHANS: [_ASKED, _calling(_FIRST), _result(_FIRST), _result(_SECOND)],
    MessageRule.UNIQUE_IDS: [_ASKED, _calling(_FIRST), _result(_FIRST), _calling(_FIRST), _result(_FIRST)],
    MessageRule.NEEDS_CONTENT: [user(), {"role": "assistant"}, user()],
    MessageRule.ONE_TRAILING_ASSISTANT: [user(), *({"role": "assistant", "content": text} for text in ("a", "b"))],
}
"""Messages that each break one rule, and no other."""


async def _order(session: Session) -> AsyncIterator[Finding]:
    seen = await session.chat(_TOOLS, [_ASKED, _calling(_FIRST), _result(_FIRST)])
    roles = session.spec.messages.roles
    expected = not roles or "tool" in roles
    yield compare("messages.roles.tool", expected, seen, {"messages": _roles_with(roles, "tool", seen.taken)})
    if not seen.taken:
        return
    silent = {**_calling(_FIRST), "content": None}
    null_content = session.spec.messages.null_content
    yield await _entry(session, "null_content", null_content, [_ASKED, silent, _result(_FIRST)], params=_TOOLS)
    rules = session.spec.messages.rules
    for rule, told in _BROKEN.items():
        has = rule in rules
        if rule is MessageRule.NEEDS_CONTENT and not has:
            continue  # OpenAI insists on it as well
        seen = await session.chat(_TOOLS, told)
        changed = (
            [one.value for one in rules if one is not rule] if has else [*(one.value for one in rules), rule.value]
        )
        yield compare(f"messages.rules.{rule.value}", not has, seen, {"messages": {"rules": changed}})
