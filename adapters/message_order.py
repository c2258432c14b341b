"""The order and completeness of messages that some chat templates and providers insist on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from adapters.draft import Draft
from adapters.message_changes import CALL_IDS, CALLS, CONTENT, ROLE, Message
from adapters.message_ends import ends_wrongly, with_users_ends
from adapters.message_facts import MessageFacts
from adapters.types import Action
from adapters.vocabulary import MessageRule

_BETWEEN_SYSTEMS: Final = "\n\n"
_LOST_RESULT: Final = "Result of a tool: "
_BRIDGE: Final = "OK."
_TURNS: Final = frozenset((MessageRule.ASSISTANT_AFTER_TOOL, MessageRule.ALTERNATING))
_TOOL_RULES: Final = (MessageRule.ANSWERED_AT_ONCE, MessageRule.NO_ORPHANS, MessageRule.UNIQUE_IDS)


def needs_order(messages: Sequence[Any], facts: MessageFacts) -> bool:
    """Whether `in_order` would change anything; *messages* have ``role``, ``tool_calls`` and ``tool_call_id``."""
    roles = [message.role for message in messages]
    if (facts.single_system or facts.system_to_user) and "system" in roles[1:]:
        return True
    if facts.no_empty or (facts.no_system and "system" in roles):
        return True
    pairs = set(pairwise(roles)) if facts.rules & _TURNS else ()
    if MessageRule.ASSISTANT_AFTER_TOOL in facts.rules and ("tool", "user") in pairs:
        return True
    if MessageRule.ALTERNATING in facts.rules and not {("user", "user"), ("assistant", "assistant")}.isdisjoint(pairs):
        return True
    if ends_wrongly(roles, facts):
        return True
    if "tool" in roles or any(message.tool_calls for message in messages if message.role == "assistant"):
        return any(rule in facts.rules for rule in _TOOL_RULES)
    if MessageRule.ONE_TRAILING_ASSISTANT in facts.rules:
        return roles[-2:] == ["assistant", "assistant"]
    return False


def in_order(messages: list[Message], facts: MessageFacts, draft: Draft) -> list[Message]:
    """*messages* as the rules of *facts* want them; what that changes is reported."""
    ordered = _without_empty(messages, draft) if facts.no_empty else messages
    if facts.single_system:
        ordered = _one_system(ordered, draft)
    elif facts.developer_to_system:
        ordered = _one_leading_system(ordered, draft)
    if facts.system_to_user or facts.no_system:
        ordered = _systems_as_user(ordered, draft, leading=not facts.no_system)
    if any(rule in facts.rules for rule in _TOOL_RULES):
        ordered = _calls_answered(ordered, facts, draft)
    if MessageRule.ONE_TRAILING_ASSISTANT in facts.rules:
        ordered = _one_trailing_assistant(ordered, draft)
    if MessageRule.ALTERNATING in facts.rules:
        ordered = _alternating(ordered, draft)
    if MessageRule.ASSISTANT_AFTER_TOOL in facts.rules:
        ordered = _bridged(ordered, draft)
    return with_users_ends(ordered, facts, draft)


def _without_empty(messages: list[Message], draft: Draft) -> list[Message]:
    """Blank texts go where something else is left: a part beside others, what is said beside calls, an answer.

    Those of a user alone are the client's own to mend. Who refuses an empty text often refuses a blank one, too.
    """
    kept = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            parts = [part for part in content if not (isinstance(part, dict) and _is_blank(part.get("text")))]
            content = content if len(parts) == len(content) else parts or ""
        if _is_blank(content) and message.get("role") == "assistant":
            draft.adjusted(CONTENT, Action.DROPPED)
            if message.get("tool_calls"):
                kept.append({**message, "content": None})
        elif content and content is not message.get("content"):
            draft.adjusted(CONTENT, Action.REWRITTEN)
            kept.append({**message, "content": content})
        else:
            kept.append(message)
    return kept


def _is_blank(text: Any) -> bool:
    return isinstance(text, str) and not text.strip()


def _alternating(messages: list[Message], draft: Draft) -> list[Message]:
    """What one side says in several messages becomes one."""
    merged: list[Message] = []
    for message in messages:
        role, calls = message.get("role"), message.get("tool_calls")
        before = merged[-1] if merged else {}
        if role in ("user", "assistant") and role == before.get("role") and not calls and not before.get("tool_calls"):
            merged[-1] = _merged([before, message])
            draft.adjusted(CONTENT, Action.REWRITTEN)
        else:
            merged.append(message)
    return merged


def _bridged(messages: list[Message], draft: Draft) -> list[Message]:
    """A word of the assistant between the result of a tool and the user, who spoke before it could."""
    bridged: list[Message] = []
    for message in messages:
        if bridged and (bridged[-1].get("role"), message.get("role")) == ("tool", "user"):
            bridged.append({"role": "assistant", "content": _BRIDGE})
            draft.adjusted("messages", Action.REWRITTEN)
        bridged.append(message)
    return bridged


def _one_system(messages: list[Message], draft: Draft) -> list[Message]:
    systems = [message for message in messages if message.get("role") == "system"]
    others = [message for message in messages if message.get("role") != "system"]
    if not systems or (len(systems) == 1 and messages[0] is systems[0]):
        return messages
    draft.adjusted(CONTENT, Action.REWRITTEN)
    return [_merged(systems), *others]


def _one_leading_system(messages: list[Message], draft: Draft) -> list[Message]:
    """A client's system and developer messages, which are two only because the roles are, become one."""
    count = next((place for place, message in enumerate(messages) if message.get("role") != "system"), len(messages))
    if count < 2 or Action.MAPPED not in {told.action for told in draft.adjustments if told.param == ROLE}:
        return messages
    draft.adjusted(CONTENT, Action.REWRITTEN)
    return [_merged(messages[:count]), *messages[count:]]


def _systems_as_user(messages: list[Message], draft: Draft, *, leading: bool) -> list[Message]:
    """System messages become a user's: all of them, or, where *leading*, those that do not begin the conversation."""
    changed = []
    for message in messages:
        leading = leading and message.get("role") == "system"
        if message.get("role") == "system" and not leading:
            draft.adjusted(ROLE, Action.MAPPED)
            changed.append({**message, "role": "user"})
        else:
            changed.append(message)
    return changed


def _one_trailing_assistant(messages: list[Message], draft: Draft) -> list[Message]:
    count = 0
    for message in reversed(messages):
        if message.get("role") != "assistant" or message.get("tool_calls"):
            break
        count += 1
    if count < 2:
        return messages
    draft.adjusted(CONTENT, Action.REWRITTEN)
    return [*messages[:-count], _merged(messages[-count:])]


def _merged(messages: Sequence[Message]) -> Message:
    """One message with the content of all."""
    contents = [message["content"] for message in messages if message.get("content")]
    if any(isinstance(content, list) for content in contents):
        parts: list[Any] = []
        for content in contents:
            parts += content if isinstance(content, list) else [{"type": "text", "text": content}]
        return {**messages[0], "content": parts}
    return {**messages[0], "content": _BETWEEN_SYSTEMS.join(map(str, contents))}


def _calls_answered(messages: list[Message], facts: MessageFacts, draft: Draft) -> list[Message]:
    """Each call with its result right behind, no call without one, no result without a call, no id twice."""
    ordered: list[Message] = []
    used: set[str] = set()
    taken: set[int] = set()
    for place, message in enumerate(messages):
        if place in taken:
            continue
        calls = message.get("tool_calls")
        if message.get("role") == "tool":
            ordered.append(_as_user(message, draft) if MessageRule.NO_ORPHANS in facts.rules else message)
        elif not isinstance(calls, list) or not calls:
            ordered.append(message)
        else:
            answered, results, places = _pair(calls, messages, place, taken)
            taken.update(places)
            if MessageRule.ANSWERED_AT_ONCE in facts.rules:
                if len(answered) != len(calls):
                    draft.adjusted(CALLS, Action.DROPPED)
                if places != list(range(place + 1, place + 1 + len(places))):
                    draft.adjusted("messages", Action.REWRITTEN)
            else:
                answered = calls
            if MessageRule.UNIQUE_IDS in facts.rules:
                answered, results = _unique(answered, results, used, draft)
            ordered += [*_with_calls(message, answered), *results]
    return ordered


def _pair(
    calls: list[Any], messages: list[Message], place: int, taken: set[int]
) -> tuple[list[Message], list[Message], list[int]]:
    """The calls that have a result before the next message with calls, the results, and where those stand."""
    answered: list[Message] = []
    results: list[Message] = []
    places: list[int] = []
    for call in calls:
        identifier = call.get("id") if isinstance(call, dict) else None
        for later in range(place + 1, len(messages)):
            candidate = messages[later]
            if candidate.get("tool_calls"):
                break
            fits = candidate.get("role") == "tool" and candidate.get("tool_call_id") == identifier
            if fits and later not in taken and later not in places:
                answered.append(call)
                results.append(candidate)
                places.append(later)
                break
    return answered, results, places


def _unique(
    calls: list[Message], results: list[Message], used: set[str], draft: Draft
) -> tuple[list[Message], list[Message]]:
    made_calls, made_results = [], []
    renamed: dict[str, list[str]] = {}
    for call in calls:
        identifier = str(call.get("id"))
        name = _free(identifier, used)
        used.add(name)
        renamed.setdefault(identifier, []).append(name)
        if name != identifier:
            draft.adjusted(CALL_IDS, Action.REWRITTEN)
        made_calls.append(call if name == identifier else {**call, "id": name})
    for result in results:
        identifier = str(result.get("tool_call_id"))
        # Of several calls of one id the results stand in the order of the calls.
        name = renamed[identifier].pop(0) if renamed.get(identifier) else identifier
        made_results.append(result if name == identifier else {**result, "tool_call_id": name})
    return made_calls, made_results


def _free(identifier: str, used: set[str]) -> str:
    name, number = identifier, 1
    while name in used:
        number += 1
        name = f"{identifier}_{number}"
    return name


def _with_calls(message: Message, calls: list[Message]) -> Iterable[Message]:
    if calls:
        return [{**message, "tool_calls": calls}]
    said = {name: value for name, value in message.items() if name != "tool_calls"}
    return [said] if said.get("content") else []


def _as_user(message: Message, draft: Draft) -> Message:
    """What a tool has found out, without the call that asked for it, is something the model is told."""
    draft.adjusted(ROLE, Action.MAPPED)
    content = message.get("content")
    if isinstance(content, list):
        return {"role": "user", "content": [{"type": "text", "text": _LOST_RESULT.strip()}, *content]}
    return {"role": "user", "content": f"{_LOST_RESULT}{content or ''}"}
