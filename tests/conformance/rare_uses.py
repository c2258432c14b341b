"""Requests that few clients make and few patches are for, and some that are meant for one engine alone."""

from __future__ import annotations

from typing import Final

from adapters.allow_list import FOREIGN
from tests.conformance.uses import (
    CALL_LOOK,
    CITY,
    HELLO,
    LOOK,
    LOOSE,
    WAIT,
    Use,
    calls,
    conforms,
    function,
    has_choices,
    has_logprobs,
    say,
    says,
    schema,
    shows_nothing,
)

NO_ROLE, NO_CONTENT = "a role of nobody's", "a message without content"
ADDRESS: Final = "an image at an address that is not public"
MANY_TOOLS: Final = "far too many tools"
BEYOND: Final = 100_000_000
"""More tokens than any model writes."""
ANYTHING: Final = {
    "type": "object", "properties": {"list": {"type": "array", "items": True}}, "required": ["list"],
    "additionalProperties": False,
}  # fmt: skip
_NAMED: Final = {"type": "function", "function": {"name": "look"}}

RARE: Final = (
    Use("log probabilities by number", "logprobs", {"logprobs": 2}, has_logprobs(2)),
    Use("no log probabilities by number", "logprobs", {"logprobs": 0}, says(HELLO)),
    Use("a negative frequency_penalty", "frequency_penalty", {"frequency_penalty": -0.5}),
    Use("forty stops", "stop", {"stop": [*(f"no {number}" for number in range(39)), "END"]}, says("Here it "),
        "Say exactly: Here it ENDs."),
    Use(MANY_TOOLS, "tools", {"tools": [function(f"look{number}") for number in range(1537)]}),
    *(
        Use(f"{name} with an effort", name, {name: value, "reasoning_effort": "low"}, effect, text)
        for name, value, effect, text in (
            ("temperature", 0.5, shows_nothing, CALL_LOOK), ("top_p", 0.5, shows_nothing, CALL_LOOK),
            ("logprobs", True, has_logprobs(0), CALL_LOOK), ("tools", [LOOK], calls("look"), CALL_LOOK),
        )
    ),
    Use("too many tools", "tools", {"tools": [function(f"look{number}", "place") for number in range(129)]}),
    Use("a tier of OpenAI's own", "service_tier", {"service_tier": "scale"}),
    Use("a choice without tools", "tool_choice", {"tool_choice": "auto"}, says(HELLO)),
    Use("one call without tools", "parallel_tool_calls", {"parallel_tool_calls": False}, says(HELLO)),
    Use("an empty list of tools", "tools", {"tools": [], "tool_choice": "auto"}, says(HELLO)),
    Use("nothing but an empty list of tools", "tools", {"tools": []}, says(HELLO)),
    Use("a tool with a client's own members", "tools", {"tools": [{**LOOK, "cache_control": {"type": "ephemeral"}}]},
        calls("look"), CALL_LOOK),
    Use("none of top_p", "top_p", {"top_p": 0}),
    Use("a negative seed", "seed", {"seed": -5}),
    *(
        Use(f"a part of {kind}", "messages", {"messages": [{"role": "user", "content": [
            {"type": "text", "text": "Say exactly: " + HELLO}, {"type": kind, kind: value}]}]})
        for kind, value in (
            ("input_audio", {"data": "AAAA", "format": "wav"}), ("file", {"file_data": "data:text/plain;base64,YQ=="}),
            ("image_url", {"url": "data:image/png;base64,iVBORw0KGgo="}),
        )
    ),
    Use("reasoning in and out", "include_reasoning", {"include_reasoning": True, "reasoning_format": "parsed"}),
    Use("thinking with an effort", "thinking", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
    Use("choices in two turns", "n", {"n": 2, "tools": [LOOK], "response_format": schema(CITY, strict=True)},
        conforms(CITY), "Where is it?"),
    Use("a legacy schema in a tool", "tools",
        {"tools": [{"type": "function", "function": {"name": "look", "parameters": LOOSE, "strict": None}}]},
        calls("look"), 'Call tool look with {"city": "x", "tags": [], "where": {"x": 1}}'),
    *(Use(f"foreign {name}", name, {name: "x"}) for name in sorted(FOREIGN)),
    Use("no tool though one is asked for", "tool_choice", {"tools": [LOOK], "tool_choice": "none"}, says(HELLO),
        CALL_LOOK),
    Use("allowed tools, if any", "tool_choice",
        {"tools": [WAIT, LOOK], "tool_choice": {"type": "allowed_tools", "allowed_tools": {
            "mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]}}},
        calls("look"), CALL_LOOK),
    Use("a forced call beside a schema", "tool_choice",
        {"tools": [WAIT, LOOK], "tool_choice": _NAMED, "response_format": schema(CITY, strict=True)},
        calls("look"), "Where is it?"),
    *(
        Use(f"an effort of {word}", "reasoning_effort", {"reasoning_effort": word})
        for word in ("medium", "high", "max", "ultra", "no kind")
    ),
    Use("log probabilities without alternatives", "logprobs", {"logprobs": True, "top_logprobs": 0}, has_logprobs(0)),
    Use("a list of anything", "response_format.json_schema", {"response_format": schema(ANYTHING)}, conforms(ANYTHING),
        "Where is it?"),
    Use("choices by a schema", "n", {"n": 2, "response_format": schema(CITY, strict=True)}, has_choices(2),
        "Where is it?"),
    Use("a tier of Groq's own", "service_tier", {"service_tier": "on_demand"}),
    Use("a verbosity of nobody's", "verbosity", {"verbosity": "most"}),
    Use("raw reasoning beside JSON", "reasoning_format",
        {"reasoning_format": "raw", "response_format": {"type": "json_object"}}, conforms({"type": "object"}),
        "Answer with a JSON object."),
    Use("raw reasoning beside tools", "reasoning_format", {"reasoning_format": "raw", "tools": [LOOK]}, calls("look"),
        CALL_LOOK),
    *(
        Use(f"a limit beyond all by {name}", name, {name: BEYOND})
        for name in ("max_completion_tokens", "max_tokens")
    ),
)  # fmt: skip
"""What few clients send, and few patches are for."""


OWN: Final = (
    Use("a grammar beside tools", "grammar", {"grammar": 'root ::= "a"', "tools": [LOOK]}, calls("look"), CALL_LOOK),
    Use("a grammar and a schema", "grammar", {"grammar": 'root ::= "a"', "json_schema": CITY}),
    Use("a regex and a grammar", "regex", {"regex": "a", "ebnf": 'root ::= "a"'}),
    Use("a template", "chat_template", {"chat_template": "{{ messages }}"}),
    Use("a flag in quotes", "chat_template_kwargs", {"chat_template_kwargs": {"enable_thinking": "false"}}),
    Use("bound output beside a named tool", "structured_outputs",
        {"structured_outputs": {"regex": "a"}, "tools": [LOOK, WAIT], "tool_choice": _NAMED}, text=CALL_LOOK),
    Use("log probabilities of the prompt", "prompt_logprobs", {"prompt_logprobs": 1}),
    Use("log probabilities beside tools", "logprobs", {"logprobs": True, "tools": [LOOK]}),
)  # fmt: skip
"""Parameters of single engines, and what goes together with them alone. Others have them dropped, or not at all."""


INVALID: Final = (
    Use("a demand for a call without tools", "tool_choice", {"tool_choice": "required"}),
    Use("a demand for a tool without tools", "tool_choice", {"tool_choice": _NAMED, "tools": []}),
    Use("alternatives alone", "top_logprobs", {"top_logprobs": 2}, has_logprobs(2)),
    Use("a limit of nothing", "max_tokens", {"max_tokens": 0}),
    Use("a part of no kind", "messages", {"messages": [
        {"role": "user", "content": [{"type": "smell", "smell": "a"}]}]}),
    Use(NO_ROLE, "messages", {"messages": [{"role": "narrator", "content": "Night fell."}, say("Hi.")]}),
    Use(NO_CONTENT, "messages", {"messages": [say("Hi."), {"role": "user"}]}),
    Use(ADDRESS, "messages", {"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]}]}),
    *(
        Use(f"an answer by {kind}", f"response_format.{kind}", {"response_format": {"type": kind, kind: "a"}})
        for kind in ("ebnf", "grammar", "regex", "structural_tag")
    ),
)  # fmt: skip
"""What OpenAI refuses, though not all others do."""
