"""Calls of tools in messages, and their results: ids that agree, and arguments that are JSON objects."""

from __future__ import annotations

import hashlib
import json
import re
import string
from typing import Any, Final

from adapters.draft import Draft
from adapters.message_changes import CALL_IDS, CALLS, Message, known_members
from adapters.message_facts import MessageFacts
from adapters.types import Action

_LETTERS: Final = string.ascii_letters + string.digits
_UNREADABLE: Final = "unreadable_arguments"


class CallRewriter:
    """Rewrites the calls of one conversation, message after message, so that ids stay the same all through it."""

    def __init__(self, facts: MessageFacts, draft: Draft) -> None:
        self._facts = facts
        self._draft = draft
        self._ids: dict[str, str] = {}
        self._pattern = re.compile(facts.id_pattern) if facts.id_pattern else None
        self._unanswered: dict[str, Any] = {}
        """The ids of calls without a result so far, with the functions they call."""

    def answer(self, message: Message) -> None:
        """Say which call a result is of, where it does not: of the first that has none, by its function's name."""
        identifier = message.get("tool_call_id")
        if isinstance(identifier, str) and identifier:
            self._unanswered.pop(identifier, None)
            return
        name = message.get("name") or message.get("tool_name")
        named = [known for known, function in self._unanswered.items() if function == name]
        found = next(iter(named or self._unanswered), None)
        if found is not None:
            del self._unanswered[found]
            message["tool_call_id"] = found
            self._draft.adjusted(CALL_IDS, Action.REWRITTEN)

    def rewrite(self, message: Message, number: int) -> None:
        """Give each call of *message*, the conversation's *number*, an id, a type and arguments that can be read."""
        calls = message.get("tool_calls")
        if not isinstance(calls, list):
            return
        if not calls:
            del message["tool_calls"]
            return
        self._unanswered = {}
        message["tool_calls"] = [
            self._call(call, f"call_{number:03d}{place:02d}") if isinstance(call, dict) else call
            for place, call in enumerate(calls)
        ]

    def _call(self, given: Message, identifier: str) -> Message:
        """The call *given*; *identifier* is its id where it has none."""
        facts = self._facts
        call = {name: value for name, value in given.items() if value is not None}
        call.setdefault("type", "function")
        if not call.get("id"):
            call["id"] = identifier
            self._draft.adjusted(CALL_IDS, Action.REWRITTEN)
        function = call.get("function")
        if isinstance(call["id"], str):
            self._unanswered[call["id"]] = function.get("name") if isinstance(function, dict) else None
            call["id"] = self.id_for(call["id"])
        if isinstance(function, dict):
            function = {name: value for name, value in function.items() if value is not None}
            arguments = function.get("arguments", "")
            function["arguments"] = _object_text(arguments)
            if function["arguments"] != arguments:
                self._draft.adjusted(CALLS, Action.REWRITTEN)
            call["function"] = (
                known_members(function, facts.call_function_fields, self._draft) if facts.nested else function
            )
        # The place in a stream, kept by clients that put calls together: it says nothing.
        call.pop("index", None)
        return known_members(call, facts.call_fields, self._draft) if facts.nested else call

    def id_for(self, given: str) -> str:
        """The id *given* in the form that the target insists on, the same for a call and its result."""
        if self._pattern is None or self._pattern.match(given):
            return given
        known = self._ids.get(given)
        if known is None:
            known = self._ids[given] = _nine_letters(given)
            self._draft.adjusted(CALL_IDS, Action.REWRITTEN)
        return known


def _object_text(arguments: Any) -> str:
    """*arguments* as the text of a JSON object, which templates read: anything else fails, turn after turn.

    What a model wrote was perhaps cut short, or wrapped twice; what cannot be read it is shown as it was.
    """
    if not isinstance(arguments, str):
        return json.dumps(arguments, ensure_ascii=False)
    if not arguments.strip():
        return "{}"
    value = _read(arguments)
    if isinstance(value, str):
        arguments, value = value, _read(value)
    if isinstance(value, dict):
        return arguments if _is_strict(arguments) else json.dumps(value, ensure_ascii=False)
    return "{}" if value is None else json.dumps({_UNREADABLE: value}, ensure_ascii=False)


def _read(text: str) -> Any:
    """The value in *text*, line breaks within strings allowed; *text* itself where it holds none."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text


def _is_strict(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _nine_letters(identifier: str) -> str:
    """An id made of *identifier* alone, so that later turns of the conversation get the same one."""
    number = int.from_bytes(hashlib.sha256(identifier.encode()).digest()[:8])
    letters = []
    for _ in range(9):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(letters)
