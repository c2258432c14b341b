"""What has to be known of a target's messages, after a refusal that says what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from adapters.message_facts import ALL, KNOWN_PARTS, MessageFacts, ReasoningDue
from adapters.told import Told
from adapters.vocabulary import MessageRule, ToolCallIds

_MISSING: Final = re.compile(r"required|missing")
_DUE: Final = re.compile(r"required|missing|must (?:be passed|include|contain|have|provide)")
_ID_IS_ODD: Final = re.compile(
    r"(?:tool_calls\S*\.id|tool_call_id|tool_use\.id|tool_result\.tool_use_id)\b.{0,60}"
    r"(?:too long|max(?:imum)?[ _]length|at most|match(?:es)? (?:the )?pattern)",
    re.DOTALL,
)
"""Ids of another provider's calls, in a conversation that goes on here."""
_NO_SYSTEM: Final = re.compile(
    r"system (?:role|messages?|prompts?|instructions?) (?:is |are )?(?:not|un) ?(?:supported|allowed|enabled)"
    r"|(?:does not|doesn'?t) support (?:the )?[`'\"]?system"
    r"|developer instruction is not enabled"
)
"""The templates of Gemma, and of a few others."""
_ORPHAN: Final = re.compile(
    r"must be a response to a prec\w+ message with .?tool_calls"
    r"|unexpected .?tool_(?:use_id|result)|tool_call_id .{0,60}(?:not found|no matching|does not match)"
)
_UNANSWERED: Final = re.compile(
    r"must be followed by tool messages|did not have (?:any )?response messages|not the same number of function calls"
    r"|tool_use.? ids were found without"
)
_BEGINS_WRONGLY: Final = re.compile(
    r"(?:must|should|has to|needs to) (?:start|begin) with (?:an? |the )?[`'\"]?user"
    r"|first (?:non-system )?(?:message|turn|role)\b.{0,60}\b(?:must|should|has to|needs to|expected)\b.{0,30}\buser\b"
    r"|first (?:message|turn|role)\b.{0,40}\b(?:not|cannot) be (?:an? |the )?[`'\"]?assistant"
)
_ENDS_WRONGLY: Final = re.compile(
    r"(?:must|should|has to|needs to) end with (?:an? |the )?[`'\"]?user"
    r"|(?:last|final) (?:message|turn|role)\b.{0,60}\b(?:must|should|has to|needs to)\b.{0,30}\buser\b"
    r"|expected (?:the )?last role (?:to be )?user"
    r"|(?:last|final) (?:message|turn|role)\b.{0,40}\b(?:not|cannot) be (?:an? |the )?[`'\"]?assistant"
    r"|assistant (?:message |response )?prefill\w*\b.{0,40}\b(?:not supported|unsupported|incompatible|not allowed)"
    r"|(?:does not|doesn'?t) support (?:assistant )?(?:message |response )?prefill"
)
_NO_TEXT: Final = re.compile(
    r"\bnon-?(?:empty|whitespace)\b|(?:must|may|can)(?: ?not|n't) be (?:empty|blank)|(?:is|are|was) (?:empty|blank)"
    r"|empty content"
)
_EMPTY: Final = re.compile(
    r"\bnull\b|\bnone\b|nonetype|valid (?:string|list|dictionary|array)|expected an? "
    r"|empty array|empty list|too short|min(?:imum )?_?(?:length|items)|must not be empty|at least (?:one|1)\b"
)
"""Members of messages that hold nothing: they are left out of all messages that are looked at."""


def better_facts(known: MessageFacts, told: Told) -> Iterator[MessageFacts]:
    """What may have to be known of messages, besides what was *known*, after a refusal in these words."""
    text = told.text
    if "developer" in text:
        yield replace(known, developer_to_system=True, roles=known.roles - {"developer"}, always=True)
    if "system message" in text and ("beginning" in text or "first" in text):
        yield replace(known, single_system=True, always=True)
    if ("tool call id" in text and "length of 9" in text) or _ID_IS_ODD.search(text):
        yield replace(known, ids=ToolCallIds.NINE_ALPHANUMERIC, always=True)
    if "role 'user' after role 'tool'" in text:
        yield replace(known, rules=known.rules | {MessageRule.ASSISTANT_AFTER_TOOL}, always=True)
    if "must alternate" in text or "alternating roles" in text:
        # They say so where the first turn is not the user's as well.
        yield replace(known, rules=known.rules | {MessageRule.ALTERNATING, MessageRule.USER_FIRST}, always=True)
    if _BEGINS_WRONGLY.search(text):
        yield replace(known, rules=known.rules | {MessageRule.USER_FIRST}, always=True)
    if _ENDS_WRONGLY.search(text):
        yield replace(known, rules=known.rules | {MessageRule.NOT_ASSISTANT_LAST}, always=True)
    if _NO_SYSTEM.search(text):
        rules = known.rules | {MessageRule.ALTERNATING}
        yield replace(known, no_system=True, developer_to_system=True, rules=rules, always=True)
    if _ORPHAN.search(text):
        yield replace(known, rules=known.rules | {MessageRule.NO_ORPHANS}, always=True)
    if _UNANSWERED.search(text):
        yield replace(known, rules=known.rules | {MessageRule.ANSWERED_AT_ONCE, MessageRule.NO_ORPHANS}, always=True)
    if _NO_TEXT.search(text):
        yield replace(known, no_empty=True, always=True)
    if "reasoning_content" in text and _DUE.search(text):
        # Models that think while they call tools want their thoughts back, which few clients keep.
        for due in (ReasoningDue.WITH_CALLS, ReasoningDue.ALWAYS):
            yield replace(known, reasoning_due=due, always=True)
    if ("content" in text and "string" in text) or "must be string, but is array" in text:
        yield replace(known, text_roles=frozenset((ALL,)), always=True)
    if "content" in text and (_MISSING.search(text) or _EMPTY.search(text)):
        yield replace(known, null_content=False, always=True)
    if "type" in text and "text" in text:
        yield replace(known, parts=known.parts or frozenset(KNOWN_PARTS), always=True)
    if _EMPTY.search(text):
        yield replace(known, always=True)
    if told.unsupported and ("message" in text or "tool_calls" in text):
        names = known.names and "name" not in re.findall(r"\w+", text)
        yield replace(known, nested=True, names=names, always=True)
