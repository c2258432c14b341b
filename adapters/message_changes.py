"""What is told of changes to messages, and the change that all parts of a message share: members that are not known."""

from __future__ import annotations

from typing import Any, Final

from adapters.draft import Draft
from adapters.types import Action

Message = dict[str, Any]

# The names under which changes are told; a closed list.
ROLE: Final = "messages.role"
NAME: Final = "messages.name"
CONTENT: Final = "messages.content"
CALLS: Final = "messages.tool_calls"
CALL_IDS: Final = "messages.tool_call_id"
REASONING: Final = "messages.reasoning"
CACHE_CONTROL: Final = "messages.cache_control"
FIELDS: Final = "messages.fields"


def known_members(members: Message, fields: frozenset[str], draft: Draft) -> Message:
    """*members* without those that are not among *fields*; what is lost with them is told."""
    if members.keys() <= fields:
        return members
    for name, value in members.items():
        if name not in fields and value not in (None, [], {}, ""):
            draft.adjusted(CACHE_CONTROL if name == "cache_control" else FIELDS, Action.DROPPED)
    return {name: value for name, value in members.items() if name in fields}
