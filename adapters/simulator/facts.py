"""Reads a provider file the way a simulator needs it: what is known, what has an effect, what asks for anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from adapters.spec import Entry, ParamSpec, ProviderSpec, Support

Body = Mapping[str, Any]

_WITHOUT_EFFECT: Final = (Support.IGNORED, Support.REJECTED, Support.ABSENT, Support.UNKNOWN)
_REFUSED: Final = (Support.REJECTED, Support.ABSENT, Support.UNKNOWN)

# Values by which a client says "off": no use of a parameter, wherever the parameter itself is known.
_OFF: Final[Mapping[str, tuple[Any, ...]]] = {
    "frequency_penalty": (0, 0.0),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "parallel_tool_calls": (True,),
    "presence_penalty": (0, 0.0),
    "stop": ([],),
    "store": (False,),
    "stream": (False,),
    "stream_options.include_usage": (False,),
    "tools": ([],),
    "top_logprobs": (0,),
}


def base_path(spec: ProviderSpec) -> str:
    """The path its endpoints stand under, such as ``/v1``."""
    return urlsplit(spec.transport.base_url or "/v1").path.rstrip("/")


def value_of(body: Body, name: str) -> Any:
    """What *body* holds under a name of the file, dotted or not; of a format, True when it is the one asked for."""
    head, _, tail = name.partition(".")
    value = body.get(head)
    if tail and head == "response_format":
        return True if isinstance(value, Mapping) and value.get("type") == tail else None
    for part in tail.split(".") if tail else ():
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def in_use(name: str, value: Any) -> bool:
    """Whether *value* asks for anything."""
    # 1 and True are equal in Python, but not in JSON.
    return value is not None and not any(value == off and type(value) is type(off) for off in _OFF.get(name, ()))


def has_effect(rule: ParamSpec | None, name: str) -> bool:
    """Whether the provider acts on the parameter at all, sent under its own name."""
    if rule is None:
        return True
    elsewhere = rule.support is Support.RENAMED and rule.to is not None and rule.to != name
    return rule.support not in _WITHOUT_EFFECT and not elsewhere


def is_refused(entry: Entry | None, canonical: str) -> bool:
    """Whether a message may not hold what *entry* is about.

    What depends on something nobody can tell beforehand, but has a patch, is refused: the patch is there for a reason.
    """
    if entry is None:
        return False
    if entry.support is Support.CONDITIONAL:
        return not entry.held_by(canonical) if entry.models else entry.patch is not None
    return entry.support in _REFUSED


def known_names(spec: ProviderSpec) -> frozenset[str]:
    """The top-level names of a chat body that the provider knows."""
    names = {"model", "messages", *spec.defaults, *spec.context.ask_for_error, *spec.reasoning.off}
    names.update(extra.partition(".")[0] for extra in spec.extra_params)
    for name, rule in spec.params.items():
        if "." in name or has_effect(rule, name) or rule.support is Support.IGNORED:
            names.add(name.partition(".")[0])
        if rule.to is not None:
            names.add(rule.to.partition(".")[0])
    if spec.streaming.progress_param is not None:
        names.add(spec.streaming.progress_param)
    return frozenset(names)


def holds_all(body: Any, wanted: Any) -> bool:
    """Whether *body* has every member of *wanted*, at every depth, with the same value."""
    if isinstance(wanted, Mapping):
        return isinstance(body, Mapping) and all(holds_all(body.get(name), value) for name, value in wanted.items())
    return bool(body == wanted)
