"""The support matrix of the documentation: what becomes of each parameter at each provider, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from adapters.adapter import Adapter
from adapters.errors import ProviderError
from adapters.handling import Handling, Outcome, outcomes
from adapters.registry import load_spec, preset_types, provider_types
from adapters.spec import ParamSpec, ProviderSpec
from adapters.target import Target
from adapters.types import Operation
from adapters.vocabulary import EXTENSIONS, PARAMETERS, Form, Patch, Support

_HEAD: Final = """\
# Providers

What becomes of each parameter at each provider. This page is written by `gateway providers matrix`; a test holds it to
the provider files. `gateway providers show TYPE` tells more of one of them: limits, models, headers, and the source of
every entry with its date.

| word | what a client gets |
|---|---|
| native | It goes as it is. |
| split, emulated, mapped, renamed, clamped, rewritten | The same in another way; `x-gateway-adjusted` has the word. |
| dropped | An answer without it, and `dropped` in `x-gateway-adjusted`. |
| refused | 400 `unsupported_parameter`, unless another target of the model has it. Never sent. |
| no effect | It goes as it is, and changes nothing there. |
| by model | As the provider's model has it. |

A model, or a call by `x-gateway-unsupported`, may narrow that: `emulate`, `reject` or `drop`. Values that mean "off",
such as `n: 1` or `logprobs: false`, are no use of a parameter and never refused.
"""
GROUPS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("Hosted", ("openai", "groq", "cerebras", "together", "fireworks")),
    ("llama.cpp and its like", ("local", "llama_cpp_server", "llama_cpp_python", "ollama", "lm_studio")),
    ("Servers for GPUs", ("vllm", "sglang", "tgi", "triton", "trtllm", "kserve", "gpustack")),
    ("Others", ("openai_compatible", "localai", "mlx_lm", "litellm_bridge")),
)  # fmt: skip
"""The tables of the page, each with its columns."""
_DONE_BY: Final[Mapping[Patch, str]] = {
    Patch.FAN_OUT: "n requests",
    Patch.EMULATE_SCHEMA: "in the prompt, checked",
    Patch.VALIDATE_SCHEMA: "checked",
    Patch.REWRITE_SCHEMA: "in its dialect",
    Patch.EMULATE_TOOLS: "by a schema",
    Patch.EMULATE_FORCED_TOOL: "by a schema",
    Patch.REQUIRE_NAMED_TOOL: "`required`, one tool",
    Patch.CLIENT_SIDE_STOP: "watched for here",
    Patch.KEEP_FIRST_CALL: "first call kept",
    Patch.FOLD_INTO_USER: "as `user`",
    Patch.CLEAN_TOOLS: "cleaned",
}
_WIDEST: Final[Mapping[str, float]] = {
    "temperature": 2, "top_p": 1, "frequency_penalty": 2, "presence_penalty": 2, "n": 128, "top_logprobs": 20,
}  # fmt: skip
"""OpenAI's own largest values, of which there is nothing to tell."""
_FORMS: Final[Mapping[Form, str]] = {Form.COUNT: "as a number", Form.ARRAY: "as a list", Form.UNSIGNED: "unsigned"}
_TOOL: Final[Mapping[str, Any]] = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "json_schema",
    "json_schema": {
        "name": "s", "strict": True,
        "schema": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    },
}  # fmt: skip
_TOGETHER: Final[Mapping[str, tuple[Mapping[str, Any], bool]]] = {
    "tools with a json_schema": ({"tools": [_TOOL], "response_format": _SCHEMA}, False),
    "a json_schema, streamed": ({"response_format": _SCHEMA, "stream": True}, True),
    "tools, streamed": ({"tools": [_TOOL], "stream": True}, True),
}


def page() -> str:
    """The whole page."""
    known = set(provider_types())
    parts = [_HEAD]
    for title, names in GROUPS:
        specs = [load_spec(name) for name in names if name in known and load_spec(name).params]
        parts += [f"## {title}\n", *_tables(specs)]
    parts += ["## Presets\n", _PRESETS, _presets()]
    return "\n".join(parts)


_PRESETS: Final = """\
A preset is what it inherits, and the little in which it differs.
"""


def _tables(specs: Sequence[ProviderSpec]) -> Iterable[str]:
    found = {spec.id: outcomes(spec) for spec in specs}
    heads = [f"[{spec.id}](../adapters/providers/{spec.id}.yaml)" for spec in specs]
    rows = [
        [f"`{name}`", *(_cell(name, spec.params.get(name), found[spec.id].get(name)) for spec in specs)]
        for name in sorted(PARAMETERS)
        if name not in EXTENSIONS or any(name in spec.params for spec in specs)
    ]
    rows += [[name, *(_together(spec, *request) for spec in specs)] for name, request in _TOGETHER.items()]
    rows += [[name, *(tell(spec) for spec in specs)] for name, tell in _MESSAGES.items()]
    rows.append(["verified", *(f"{spec.verified}, {spec.as_of}" for spec in specs)])
    yield _table(["", *heads], rows)


def _cell(name: str, facts: ParamSpec | None, outcome: Outcome | None) -> str:
    if facts is None or outcome is None:
        return "-"
    match outcome.handling:
        case Handling.PATCHED:
            return ", ".join((*outcome.actions, *_how(facts)))
        case Handling.IGNORED:
            return "no effect"
        case Handling.NATIVE:
            return ", ".join(("native", *_bounds(name, facts)))
        case other:
            return other.value


def _how(facts: ParamSpec) -> Iterable[str]:
    if facts.to is not None and facts.support is Support.RENAMED:
        yield f"as `{facts.to}`"
    elif facts.form is not None:
        yield _FORMS[facts.form]
    elif facts.patch is not None and facts.patch in _DONE_BY:
        yield _DONE_BY[facts.patch]


def _bounds(name: str, facts: ParamSpec) -> Iterable[str]:
    """How far it is native, and what becomes of more."""
    if facts.max_items is not None:
        more = "more watched for" if facts.patch is Patch.CLIENT_SIDE_STOP else "more refused"
        yield f"up to {facts.max_items}, {more}"
    elif facts.max is not None and facts.max < _WIDEST.get(name, facts.max):
        yield f"up to {facts.max:g}"


def _together(spec: ProviderSpec, members: Mapping[str, Any], stream: bool) -> str:
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **members}
    body = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in request.items()}
    try:
        prepared = Adapter(Target(spec.id, spec.id, "model", spec)).prepare(body, Operation.CHAT, stream)
    except ProviderError:
        return "refused"
    words = {str(change.action) for change in prepared.adjustments if change.param in members}
    return ", ".join(sorted(words)) or "native"


def _developer(spec: ProviderSpec) -> str:
    entry = spec.messages.developer_role
    if entry is None:
        return "native"
    if entry.models:
        return "by model"
    return "native" if entry.held_by("model") and entry.support is not Support.CONDITIONAL else "mapped to system"


def _name(spec: ProviderSpec) -> str:
    entry = spec.messages.name
    if entry is None or entry.held_by("model") or entry.support is Support.IGNORED:
        return "native" if entry is None or entry.support is not Support.IGNORED else "no effect"
    return "in front of the text" if entry.patch is Patch.PREFIX_CONTENT else "dropped"


def _images(spec: ProviderSpec) -> str:
    parts = spec.messages.content_parts
    support = parts.get("image_url")
    if support is None:
        return "native" if not parts else "refused"
    return {"native": "native", "conditional": "by model", "bytes": "fetched here", "absent": "refused"}[support]


_MESSAGES: Final[Mapping[str, Callable[[ProviderSpec], str]]] = {
    "role `developer`": _developer,
    "`name` of a message": _name,
    "images by address": _images,
}


def _presets() -> str:
    rows = []
    for name in preset_types():
        spec = load_spec(name)
        parent = load_spec(spec.inherits or "openai_compatible")
        before, after = outcomes(parent), outcomes(spec)
        differing = [
            f"`{param}` {_cell(param, spec.params[param], after[param])}"
            for param in sorted(after)
            if _cell(param, spec.params[param], after[param])
            != _cell(param, parent.params.get(param), before.get(param))
        ]
        link = f"[{name}](../adapters/providers/presets/{name}.yaml)"
        rows.append([link, spec.name, spec.inherits or "-", "; ".join(differing) or "nothing", spec.verified.value])
    return _table(["type", "name", "inherits", "differs in", "verified"], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
