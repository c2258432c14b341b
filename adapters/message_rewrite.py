"""One message after another in the form a target takes, with every change that is more than tidying reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from adapters.draft import Draft
from adapters.message_calls import CallRewriter
from adapters.message_changes import CACHE_CONTROL, CALLS, CONTENT, NAME, REASONING, ROLE, Message, known_members
from adapters.message_facts import ALL, KNOWN_PARTS, REASONING_FIELDS, MessageFacts, ReasoningDue
from adapters.message_parts import in_openais_words, without_thoughts
from adapters.patches import invalid, unsupported
from adapters.types import Action

_BETWEEN_PARTS: Final = "\n"
_SHOWN: Final = 40
_RESULTS: Final = ("tool", "function")
_DUE: Final = "reasoning_content"
_BLANK: Final = " "
"""Reasoning that nobody knows any more; an empty text is none to some."""
_SPEAKERS: Final = ("system", "developer", "user")


class Rewriter:
    """Rewrites the messages of one request, in their order: ids stay consistent over the conversation."""

    def __init__(self, facts: MessageFacts, draft: Draft, messages: Sequence[Any]) -> None:
        self._facts = facts
        names = [one.get("name") for one in messages if isinstance(one, dict) and one.get("role") == "user"]
        self._prefix_names = facts.prefix_names and len({name for name in names if isinstance(name, str)}) > 1
        self._draft = draft
        self._calls = CallRewriter(facts, draft)
        self._function_call: str | None = None

    def rewrite(self, given: Message, number: int) -> Message:
        """A copy of *given* that the target takes."""
        facts = self._facts
        message = {name: value for name, value in given.items() if value is not None or name == "content"}
        role = message.get("role")
        if role in _RESULTS:
            self._result(message)
        elif role in _SPEAKERS and message.get("content") is None:
            raise invalid(f"messages[{number}].content", f"A message of the role '{role}' needs content.")
        if not facts.null_content and message.get("role") == "assistant" and message.get("content") is None:
            message["content"] = ""
        self._role(message)
        self._functions(message, number)
        self._thoughts(message)
        self._reasoning(message)
        self._refusal(message)
        if "content" in message:
            message["content"] = self._content(message, f"messages[{number}].content")
        if role == "tool":
            self._calls.answer(message)
        self._name(message)
        self._calls.rewrite(message, number)
        self._reasoning_due(message)
        if isinstance(message.get("tool_call_id"), str):
            message["tool_call_id"] = self._calls.id_for(message["tool_call_id"])
        if not facts.cache_control and message.pop("cache_control", None) is not None:
            self._told(CACHE_CONTROL, Action.DROPPED)
        if facts.nested:
            return known_members(message, facts.fields, self._draft)
        return message

    def _told(self, param: str, action: Action) -> None:
        self._draft.adjusted(param, action)

    def _role(self, message: Message) -> None:
        if message.get("role") == "developer" and self._facts.developer_to_system:
            message["role"] = "system"
            self._told(ROLE, Action.MAPPED)

    def _functions(self, message: Message, number: int) -> None:
        """Say the legacy call of a function as a tool call, and its result as that call's."""
        if self._facts.functions:
            return
        call = message.pop("function_call", None)
        if isinstance(call, dict):
            self._function_call = f"call_{number:05d}"
            made = {"id": self._function_call, "type": "function", "function": call}
            calls = message.get("tool_calls")
            message["tool_calls"] = [*calls, made] if isinstance(calls, list) else [made]
            self._told(CALLS, Action.REWRITTEN)
        elif message.get("role") == "function" and self._function_call is not None:
            message.pop("name", None)
            message |= {"role": "tool", "tool_call_id": self._function_call}
            self._told(ROLE, Action.MAPPED)

    def _thoughts(self, message: Message) -> None:
        """What an assistant has thought as its reasoning, where it stands among the parts of its content."""
        content = message.get("content")
        found = without_thoughts(content) if message.get("role") == "assistant" and isinstance(content, list) else None
        if found is None:
            return
        rest, thought = found
        message["content"] = rest or (None if self._facts.null_content and message.get("tool_calls") else "")
        if thought and not REASONING_FIELDS & message.keys():
            message["reasoning_content"] = thought
        self._told(REASONING, Action.REWRITTEN)

    def _reasoning(self, message: Message) -> None:
        facts = self._facts
        if not facts.reasoning_known:
            return
        texts: list[str] = []
        for name in sorted(REASONING_FIELDS & message.keys() - facts.reasoning_fields):
            value = message.pop(name)
            if isinstance(value, str) and value:
                texts.append(value)
            elif value:
                self._told(REASONING, Action.DROPPED)
        if not texts:
            return
        field = facts.reasoning_field
        if facts.reasoning_as_tags and isinstance(message.get("content"), str):
            message["content"] = f"<think>{texts[0]}</think>{message['content']}"
            self._told(REASONING, Action.REWRITTEN)
        elif field is None:
            self._told(REASONING, Action.DROPPED)
        elif field not in message:
            message[field] = texts[0]
            self._told(REASONING, Action.RENAMED)

    def _reasoning_due(self, message: Message) -> None:
        """Give back what the model has thought, if only as a blank where the client did not keep it."""
        due = self._facts.reasoning_due
        if due is ReasoningDue.NEVER or message.get("role") != "assistant" or message.get(_DUE):
            return
        if due is ReasoningDue.ALWAYS or message.get("tool_calls"):
            said = message.pop("reasoning", None)
            message[_DUE] = said if isinstance(said, str) and said else _BLANK
            self._told(REASONING, Action.REWRITTEN)

    def _result(self, message: Message) -> None:
        """What a tool has found out as text: agents pass objects on as they are, and nothing as null."""
        content = message.get("content")
        parts = isinstance(content, list) and all(isinstance(part, dict) and "type" in part for part in content)
        if content is None:
            message["content"] = ""
        elif not isinstance(content, str) and not parts:
            message["content"] = json.dumps(content, ensure_ascii=False)
            self._told(CONTENT, Action.REWRITTEN)

    def _refusal(self, message: Message) -> None:
        """What a model would not do is what it said, where there is no field for it."""
        if self._facts.nested and "refusal" in message and "refusal" not in self._facts.fields:
            refusal = message.pop("refusal")
            if isinstance(refusal, str) and refusal and not message.get("content"):
                message["content"] = refusal
                self._told(CONTENT, Action.REWRITTEN)

    def _content(self, message: Message, where: str) -> Any:
        content = message["content"]
        if not isinstance(content, list):
            return content
        parts = [self._part(part, f"{where}[{number}]") for number, part in enumerate(content)]
        texts = [part.get("text", "") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
        roles = self._facts.text_roles
        if not (ALL in roles or message.get("role") in roles) or len(texts) != len(parts):
            return parts
        self._told(CONTENT, Action.REWRITTEN)
        return _BETWEEN_PARTS.join(map(str, texts))

    def _part(self, part: Any, place: str) -> Any:
        if isinstance(part, str):
            self._told(CONTENT, Action.REWRITTEN)
            return {"type": "text", "text": part}
        if not isinstance(part, dict):
            return part
        facts, said = self._facts, in_openais_words(part)
        if said is not None:
            self._told(CONTENT, Action.REWRITTEN)
            part = said
        kind = part.get("type")
        if facts.parts and isinstance(kind, str) and kind not in facts.parts:
            if kind == "refusal":
                return {"type": "text", "text": part.get("refusal", "")}
            error = unsupported(place, facts.provider)
            error.message = (
                f"Content parts of the type {kind[:_SHOWN]!r} are not supported by {facts.provider} ({place})."
            )
            raise error
        kept = {name: value for name, value in part.items() if value is not None}
        if not facts.cache_control and kept.pop("cache_control", None) is not None:
            self._told(CACHE_CONTROL, Action.DROPPED)
        return known_members(kept, frozenset(("type", *KNOWN_PARTS)), self._draft) if facts.nested else kept

    def _name(self, message: Message) -> None:
        facts = self._facts
        name = message.get("name")
        if facts.names or name is None or (facts.functions and message.get("role") == "function"):
            return
        del message["name"]
        content = message.get("content")
        # Who speaks matters where several do.
        if self._prefix_names and message.get("role") == "user" and isinstance(name, str) and isinstance(content, str):
            message["content"] = f"{name}: {content}"
            self._told(NAME, Action.REWRITTEN)
        else:
            self._told(NAME, Action.DROPPED)
