"""Random requests for a chat, all of them valid: the whole surface of OpenAI's chat completions."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from tests.conformance.uses import CALL_LOOK, CITY, LOOK, LOOSE, WAIT, function, schema

Strategy = st.SearchStrategy[Any]

_PIXEL: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
_TEXTS: Final = ("Where is it?", "Say hello.", CALL_LOOK, "Grüße 🌍", "x" * 400)
_IDS: Final = ("call_1", "call_abc-DEF_2", "toolu_01", "abcdefgh9", "a" * 40)
_UNION: Final = {
    "type": "object",
    "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "b": {"type": "array", "items": {}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def members(**optional: Strategy) -> Strategy:
    """A mapping with any of these members, some of them null."""
    return st.fixed_dictionaries({}, optional={name: one | st.none() for name, one in optional.items()})


def _text() -> Strategy:
    return st.sampled_from(_TEXTS)


def _parts(*kinds: Strategy) -> Strategy:
    text = st.builds(lambda text: {"type": "text", "text": text}, _text())
    return st.lists(st.one_of(text, *kinds), min_size=1, max_size=3)


_IMAGE: Final = st.builds(
    lambda detail: {"type": "image_url", "image_url": {"url": _PIXEL, **detail}},
    st.sampled_from([{}, {"detail": "low"}]),
)
_KEPT: Final = members(cache_control=st.just({"type": "ephemeral"}), id=st.just("msg_1"))


def _instructions() -> Strategy:
    return st.builds(
        lambda role, content, name: {"role": role, "content": content, **name},
        st.sampled_from(["system", "developer"]),
        _text() | _parts(),
        members(name=st.just("admin")),
    )


def _user() -> Strategy:
    content = _text() | _parts(_IMAGE)
    return st.builds(
        lambda content, name, kept: {"role": "user", "content": content, **name, **kept},
        content,
        members(name=st.sampled_from(["ada", "bob"])),
        _KEPT,
    )


def _assistant() -> Strategy:
    return st.builds(
        lambda content, more: {"role": "assistant", "content": content, **more},
        _text() | _parts(),
        members(
            name=st.just("bot"),
            refusal=st.nothing(),
            reasoning_content=st.just("hm"),
            reasoning=st.just("hm"),
            annotations=st.just([]),
            tool_calls=st.nothing(),
        ),
    )


@st.composite
def _round(draw: st.DrawFn) -> list[Any]:
    """An assistant's calls, each with its result."""
    ids = draw(st.lists(st.sampled_from(_IDS), min_size=1, max_size=3, unique=True))
    named = [(one, *draw(st.sampled_from([("look", '{"place": "x"}'), ("wait", "{}"), ("wait", "")]))) for one in ids]
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": arguments}, **draw(_PLACE)}
        for one, name, arguments in named
    ]
    caller = {"role": "assistant", "content": draw(st.sampled_from([None, "", "Let me see."])), "tool_calls": calls}
    contents = [draw(_text() | _parts()) for _ in ids]
    return [
        caller,
        *({"role": "tool", "tool_call_id": one, "content": text} for one, text in zip(ids, contents, strict=True)),
    ]


_PLACE: Final = st.sampled_from([{}, {"index": 0}])


@st.composite
def _messages(draw: st.DrawFn) -> list[Any]:
    made: list[Any] = draw(st.lists(_instructions(), max_size=2))
    for _ in range(draw(st.integers(0, 3))):
        made.append(draw(_user()))
        made += draw(st.one_of(st.builds(lambda one: [one], _assistant()), _round(), st.just([])))
        if draw(st.integers(0, 9)) == 0:
            made.append(draw(_instructions()))
    if not made or made[-1]["role"] != "tool" or draw(st.booleans()):
        made.append(draw(_user()))
    return made


_NAMED: Final = {"type": "function", "function": {"name": "look"}}
_ALLOWED: Final = {
    "type": "allowed_tools",
    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "look"}}]},
}


def _tools() -> Strategy:
    others = st.sampled_from([
        WAIT,
        function("find", "a", "b", strict=True),
        {"type": "function", "function": {"name": "plain"}},
        {"type": "function", "function": {"name": "free", "description": "d", "parameters": LOOSE}},
    ])  # fmt: skip
    return st.builds(
        lambda more, choice: {"tools": [LOOK, *more], **choice},
        st.lists(others, max_size=3, unique_by=lambda one: one["function"]["name"]),
        members(
            tool_choice=st.sampled_from(["none", "auto", "required", _NAMED, _ALLOWED]),
            parallel_tool_calls=st.booleans(),
        ),
    )


def _formats() -> Strategy:
    shapes = st.sampled_from([CITY, LOOSE, _UNION])
    return st.one_of(
        st.just({"type": "text"}),
        st.just({"type": "json_object"}),
        st.builds(
            lambda shape, strict: schema(shape, **strict),
            shapes,
            st.sampled_from([{}, {"strict": True}, {"strict": False}, {"strict": None, "description": "d"}]),
        ),
    )


def _number(low: float, high: float) -> Strategy:
    return st.sampled_from([low, high, (low + high) / 2]) | st.floats(low, high).map(lambda value: round(value, 3))


_STOPS: Final = ("END", "\n\n", "7", "###", "STOP", "hello")
_OTHERS: Final = members(
    frequency_penalty=_number(-2, 2),
    presence_penalty=_number(-2, 2),
    logit_bias=st.sampled_from([{}, {"5": 1}, {"5": -100, "7": 100}]),
    max_completion_tokens=st.integers(1, 4000),
    max_tokens=st.integers(1, 4000),
    metadata=st.sampled_from([{}, {"a": "b"}]),
    modalities=st.sampled_from([["text"], ["text"], ["text", "audio"]]),
    n=st.sampled_from([1, 1, 2, 3]),
    prediction=st.just({"type": "content", "content": "a"}),
    prompt_cache_key=st.just("k"),
    prompt_cache_retention=st.just("24h"),
    reasoning_effort=st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh"]),
    response_format=_formats(),
    safety_identifier=st.just("s"),
    seed=st.integers(-(2**31), 2**31),
    service_tier=st.sampled_from(["auto", "default", "flex", "priority", "scale"]),
    stop=st.sampled_from(_STOPS) | st.lists(st.sampled_from(_STOPS), max_size=4, unique=True),
    store=st.booleans(),
    temperature=_number(0, 2),
    top_p=_number(0, 1),
    user=st.just("u"),
    verbosity=st.sampled_from(["low", "medium", "high"]),
    web_search_options=st.sampled_from([{}, {"search_context_size": "low"}]),
)
_LOGPROBS: Final = st.sampled_from([{}, {}, {"logprobs": False}, {"logprobs": True}]) | st.builds(
    lambda number: {"logprobs": True, "top_logprobs": number}, st.integers(0, 20)
)
_STREAM: Final = st.sampled_from([
    {}, {"stream": False}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}},
    {"stream": True, "stream_options": {"include_obfuscation": False}}, {"stream": True, "stream_options": None},
])  # fmt: skip


@st.composite
def _few(draw: st.DrawFn) -> dict[str, Any]:
    """A few of the other parameters: with all of them nearly every request would be refused by somebody."""
    drawn = draw(_OTHERS)
    kept = draw(st.sets(st.sampled_from(sorted(drawn)), max_size=4)) if drawn else set()
    return {name: drawn[name] for name in sorted(kept)}


def chat_requests() -> Strategy:
    """A request for a chat, without its model."""
    return st.builds(
        lambda messages, tools, logprobs, stream, others: {
            "messages": messages, **tools, **logprobs, **stream, **others,
        },
        _messages(), st.just({}) | _tools(), _LOGPROBS, _STREAM, _few(),
    )  # fmt: skip
