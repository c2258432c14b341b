"""Messages that some provider takes only when they are changed, all of them valid; and how they have to be changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters.spec import Entry, Support
from adapters.target import Target
from adapters.vocabulary import Patch
from tests.conformance.rehearsal import has_tools
from tests.conformance.uses import CALL_LOOK, HELLO, LOOK, Effect, Use, say, says, shows_nothing


def _call(arguments: str) -> dict[str, Any]:
    return {"id": "call_abc-1", "type": "function", "function": {"name": "look", "arguments": arguments}}


_CALLED: Final = {
    "role": "assistant", "content": None,
    "tool_calls": [_call('{"place": "x"}')],
}  # fmt: skip
_RESULT: Final = {"role": "tool", "tool_call_id": "call_abc-1", "content": "a garden"}
_THOUGHT: Final = "hm"
_END: Final = say("Say exactly: " + HELLO)


PAST_CALL: Final = (say("Look."), _CALLED, _RESULT, _END)
"""A conversation in which a tool was called."""


def _told(name: str, *messages: dict[str, Any], effect: Effect | None = None, **members: Any) -> Use:
    return Use(name, "messages", {"messages": [*messages], **members}, effect or says(HELLO))


MESSAGES: Final = (
    _told("a developer", {"role": "developer", "content": "Be brief."}, _END),
    _told("two systems", {"role": "system", "content": "Be brief."}, {"role": "system", "content": "Be kind."}, _END),
    _told("a late system", say("Hi."), {"role": "assistant", "content": "Hi."},
          {"role": "system", "content": "Be brief."}, _END),
    _told("names", {**say("Hi."), "name": "ada"}, {"role": "assistant", "content": "Hi.", "name": "bot"},
          {**_END, "name": "bob"}),
    _told("parts of text", {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
          {"role": "user", "content": [{"type": "text", "text": "Say exactly: " + HELLO}]}),
    _told("an assistant's parts", say("Hi."),
          {"role": "assistant", "content": [{"type": "text", "text": "Hi."}], "refusal": None}, _END),
    _told("a past call", say("Look."), _CALLED, _RESULT, _END, tools=[LOOK]),
    _told("a past call without tools", say("Look."), _CALLED, _RESULT, _END),
    _told("a result in parts", say("Look."), _CALLED, {**_RESULT, "content": [{"type": "text", "text": "x"}]}, _END,
          tools=[LOOK]),
    _told("a result to go on from", say(CALL_LOOK), _CALLED, _RESULT, tools=[LOOK],
          effect=says("The tool said: a garden")),
    _told("a call without arguments", say("Look."),
          {**_CALLED, "content": "", "tool_calls": [_call("")]},
          _RESULT, _END, tools=[LOOK]),
    _told("an unanswered call", say("Look."), _CALLED, _END, tools=[LOOK]),
    _told("an orphaned result", say("Hi."), {**_RESULT, "tool_call_id": "call_gone"}, _END),
    _told("what clients keep", {**say("Hi."), "id": "1", "cache_control": {"type": "ephemeral"}},
          {"role": "assistant", "content": "Hi.", "reasoning_content": _THOUGHT, "annotations": [], "audio": None,
           "function_call": None, "tool_calls": None, "refusal": None, "thinking_blocks": []}, _END),
    _told("an empty list of calls", say("Hi."), {"role": "assistant", "content": "Hi.", "tool_calls": []}, _END),
    _told("reasoning by its other name", say("Hi."),
          {"role": "assistant", "content": "Hi.", "reasoning": _THOUGHT}, _END),
    _told("reasoning by a rarer name", say("Hi."),
          {"role": "assistant", "content": "Hi.", "reasoning_text": _THOUGHT}, _END),
    _told("two users", say("Hi."), _END),
    _told("the same id twice", say("Look."), _CALLED, _RESULT, _CALLED, _RESULT, _END, tools=[LOOK]),
    _told("an assistant's last word", say("Hi."), {"role": "assistant", "content": "Well,"},
          {"role": "assistant", "content": "now"}, effect=shows_nothing),
    _told("a user with nothing to say", say("Hi."), {"role": "assistant", "content": "Hi."},
          {"role": "user", "content": ""}, _END),
    _told("a function's result", say("Look."),
          {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
          {"role": "function", "name": "look", "content": "x"}, _END),
    _told("a refusal in parts", say("Hi."),
          {"role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}, _END),
    _told("a result that is nothing", say("Look."), _CALLED, {**_RESULT, "content": ""}, _END, tools=[LOOK]),
    _told("an assistant first", {"role": "assistant", "content": "Hi."}, _END),
)  # fmt: skip


def check_messages(target: Target, use: Use, bodies: Sequence[Mapping[str, Any]], told: str) -> None:
    """Whether nothing was lost of the messages of *use* on their way to *target* without being *told*."""
    given, facts = use.members["messages"], target.spec.messages
    canonical = target.spec.canonical(target.model)
    for body in bodies:
        sent = body["messages"]
        if any(one["role"] == "developer" for one in given) and not _has(facts.developer_role, canonical):
            assert all(one["role"] != "developer" for one in sent)
            assert "messages.role=mapped" in told
        names = [one["name"] for one in given if one["role"] == "user" and "name" in one]
        if names and facts.name is not None and facts.name.patch is Patch.PREFIX_CONTENT:
            assert all(any(str(one["content"]).startswith(f"{name}: ") for one in sent) for name in names)
            assert "messages.name=rewritten" in told
        if _THOUGHT in (thought for one in given for thought in one.values()):
            _check_thought(target, canonical, sent, told)
        tools = target.spec.params.get("tools")
        emulated = tools is not None and tools.patch is Patch.EMULATE_TOOLS
        if emulated and (has_tools(target) is False or (tools is not None and not tools.held_by(canonical))):
            assert not any("tool_calls" in one or one["role"] == "tool" for one in sent)
        refused = [part["refusal"] for one in given for part in one["content"] or () if "refusal" in part]
        assert all(words in str(sent) for words in refused)


def _check_thought(target: Target, canonical: str, sent: Sequence[Mapping[str, Any]], told: str) -> None:
    replay = target.spec.messages.assistant_reasoning_in
    if replay is None:
        return
    if replay.think_tags and canonical.startswith(replay.think_tags):
        assert any(str(one.get("content")).startswith(f"<think>{_THOUGHT}</think>") for one in sent)
    elif replay.field is None:
        assert "messages.reasoning=dropped" in told
    else:
        names = {replay.field, replay.alias}
        assert any(one.get(name) == _THOUGHT for one in sent for name in names if name is not None)


def _has(entry: Entry | None, canonical: str) -> bool:
    """Whether the model certainly has it."""
    if entry is None or entry.support is Support.NATIVE:
        return True
    return bool(entry.models) and entry.held_by(canonical)
