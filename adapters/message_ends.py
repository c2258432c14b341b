"""How a conversation begins and ends where that has to be with the user, as some chat templates insist.

A greeting of the assistant's gets a word before it, and an answer that it has begun one behind it, so that nothing of
what was said is lost. That adds to what the client says, and is not done where it wants nothing changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from adapters.draft import Draft, Unsupported
from adapters.message_changes import Message
from adapters.message_facts import MessageFacts
from adapters.types import Action
from adapters.vocabulary import MessageRule

_INSTRUCTING: Final = ("system", "developer")
_OPENING: Final = "Begin."
_GO_ON: Final = "Go on from there, without repeating any of it."
_ASKED_FOR: Final = "continue_final_message"
"""With this the client says that the last message is a beginning (vLLM, SGLang)."""


def ends_wrongly(roles: Sequence[Any], facts: MessageFacts) -> bool:
    """Whether a conversation of *roles* may begin or end with the wrong one."""
    if MessageRule.USER_FIRST in facts.rules and _first(roles) == "assistant":
        return True
    return MessageRule.NOT_ASSISTANT_LAST in facts.rules and roles[-1:] == ["assistant"]


def with_users_ends(messages: list[Message], facts: MessageFacts, draft: Draft) -> list[Message]:
    """*messages* with the user at both ends, as far as the rules of *facts* want it; what that changes is reported."""
    roles = [message.get("role") for message in messages]
    if draft.unsupported is Unsupported.REJECT or not ends_wrongly(roles, facts):
        return messages
    made = list(messages)
    if MessageRule.NOT_ASSISTANT_LAST in facts.rules and _may_be_followed(messages[-1], draft):
        made.append({"role": "user", "content": _GO_ON})
    if MessageRule.USER_FIRST in facts.rules and _first(roles) == "assistant":
        place = next(number for number, role in enumerate(roles) if role not in _INSTRUCTING)
        made.insert(place, {"role": "user", "content": _OPENING})
    if len(made) > len(messages):
        draft.adjusted("messages", Action.REWRITTEN)
    return made


def _first(roles: Sequence[Any]) -> Any:
    return next((role for role in roles if role not in _INSTRUCTING), None)


def _may_be_followed(message: Message, draft: Draft) -> bool:
    """Whether the last *message* is an answer to go on from: calls want results, and a ``prefix`` says what it is."""
    called = message.get("tool_calls") or message.get("prefix") or _ASKED_FOR in draft.body
    return message.get("role") == "assistant" and not called
