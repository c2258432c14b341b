"""Messages as a target takes them: decoded at most once, and sent byte for byte where nothing has to change."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from adapters.draft import Draft
from adapters.message_check import MessageCheck
from adapters.message_facts import MessageFacts, ReasoningDue
from adapters.message_order import in_order, needs_order
from adapters.message_rewrite import Rewriter
from adapters.parameter_patches import raw
from adapters.patches import invalid

_decode = msgspec.json.Decoder().decode

# What messages about calls hold, whoever wrote them.
_CALLS: Final = b'"tool_calls"'


class MessagePatches:
    """The changes one target needs; a single pass tells that most messages need none."""

    def __init__(self, facts: MessageFacts) -> None:
        self._facts = facts
        self._check = MessageCheck(facts)
        self._due = facts.reasoning_due is not ReasoningDue.NEVER
        self._ordered = bool(facts.rules or facts.single_system or facts.system_to_user or facts.no_empty)
        self.always = facts.always
        """Whether messages have to be looked at even where no calls are in them."""

    def __call__(self, draft: Draft) -> None:
        """Change the messages of *draft* where the target needs it; BAD_REQUEST or UNSUPPORTED_PARAMETER."""
        given = draft.body["messages"]
        if not self.always and _CALLS not in bytes(given):
            return
        plain = self._check.read(given)
        if plain is not None and not self._due and not (self._ordered and needs_order(plain, self._facts)):
            return
        try:
            messages = _decode(given)
        except msgspec.DecodeError:
            raise invalid("messages", "'messages' cannot be read.") from None
        rewriter = Rewriter(self._facts, draft, messages)
        changed: list[dict[str, Any]] = []
        for number, message in enumerate(messages):
            if not isinstance(message, dict):
                where = f"messages[{number}]"
                raise invalid(where, f"'{where}' is not a message: an object with 'role' and 'content' is expected.")
            changed.append(rewriter.rewrite(message, number))
        changed = in_order(changed, self._facts, draft)
        if changed != messages:
            draft.body["messages"] = raw(changed)
