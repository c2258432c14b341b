"""What `gateway providers show` says of a provider: its facts, arranged for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from adapters.handling import Outcome, outcomes
from adapters.spec import Entry, ModelSpec, ParamSpec, ProviderSpec
from adapters.vocabulary import Overflow

_WORTH_SAYING = ("hint", "note", "flag", "env", "requires")


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the page; every row has the same number of cells."""

    title: str
    rows: tuple[tuple[str, ...], ...]


def everything(spec: ProviderSpec) -> dict[str, Any]:
    """What the file and those it inherits from say, and what becomes of each parameter; for JSON."""
    facts = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    found = outcomes(spec)
    parameters = {
        name: {"handling": found[name].handling, "actions": list(found[name].actions), **entry}
        for name, entry in sorted(facts.pop("params", {}).items())
    }
    facts.pop("schema", None)
    head = {"type": facts.pop("id"), "name": facts.pop("name"), "kind": facts.pop("kind")}
    return {**head, "verified": spec.verified.value, "as_of": facts.pop("as_of"), **facts, "parameters": parameters}


def sections(spec: ProviderSpec) -> Iterator[Section]:
    """The page of *spec*, without the parts of which nothing is known."""
    for title, rows in (
        ("Reaching it", _transport(spec)),
        ("Endpoints", _endpoints(spec)),
        ("Parameters", _parameters(spec)),
        ("Parameters of its own, sent as they are", _extra_params(spec)),
        ("Messages", _messages(spec)),
        ("What does not go together", _conflicts(spec)),
        ("Answers", _answers(spec)),
        ("Models, in USD per million tokens", _models(spec)),
        ("Sources", sorted(spec.sources.items())),
    ):
        section = Section(title, tuple(rows))
        if section.rows:
            yield section


def _transport(spec: ProviderSpec) -> Iterator[tuple[str, str]]:
    transport, auth = spec.transport, spec.transport.auth
    yield "base URL", transport.base_url or "none: write base_url in the configuration"
    if transport.alt_base_url:
        yield "or", transport.alt_base_url
    key = f"{auth.header}: {auth.header_value('KEY')}"
    yield "key", _joined(key, "optional" if auth.optional else "wanted", auth.env and f"in {auth.env}", auth.note)
    if transport.health is not None:
        yield "health", transport.health.path
    unknown = transport.unknown_body_fields
    yield (
        "unknown fields",
        _joined(unknown.support.value, str(unknown.status) if unknown.status else None, unknown.note),
    )
    if transport.note:
        yield "note", transport.note


def _endpoints(spec: ProviderSpec) -> Iterator[tuple[str, str, str, str]]:
    for name, endpoint in spec.endpoints.items():
        lacks = f"without {', '.join(endpoint.lacks)}" if endpoint.lacks else None
        said = _joined(lacks, endpoint.note, endpoint.hint)
        yield name, endpoint.support.value, endpoint.path or "-", said


def _parameters(spec: ProviderSpec) -> Iterator[tuple[str, ...]]:
    found = outcomes(spec)
    for name, facts in sorted(spec.params.items()):
        yield name, found[name].handling.value, _how(facts, found[name]), _details(facts), _sources(facts.src)


def _extra_params(spec: ProviderSpec) -> Iterator[tuple[str]]:
    if spec.extra_params:
        yield (", ".join(spec.extra_params),)


def _how(facts: ParamSpec, outcome: Outcome) -> str:
    """The file's word for what is done, else what clients are told."""
    if facts.patch is not None:
        return facts.patch.value
    return f"to {facts.to}" if facts.to else ", ".join(outcome.actions) or "-"


def _details(facts: ParamSpec) -> str:
    said = [facts.support.value]
    low = facts.min if facts.min is not None else facts.min_exclusive
    high = facts.max if facts.max is not None else facts.max_exclusive
    if low is not None or high is not None:
        said.append(f"{_number(low)} to {_number(high)}")
    if facts.max_items is not None:
        said.append(f"at most {facts.max_items} items")
    if facts.form is not None:
        said.append(f"as {facts.form}")
    if facts.values:
        said.append("|".join(facts.values))
    said += [f"{model}: {'|'.join(values)}" for model, values in facts.by_model.items()]
    if facts.models:
        said.append(f"only {', '.join(facts.models)}")
    if facts.default is not None:
        said.append(f"by default {facts.default}")
    said += [f"{key}: {value}" if key not in ("note", "hint") else value for key, value in _remarks(facts)]
    return "; ".join(said)


def _remarks(facts: ParamSpec) -> Iterator[tuple[str, str]]:
    for key in _WORTH_SAYING:
        value = getattr(facts, key)
        if value:
            yield key, value


def _messages(spec: ProviderSpec) -> Iterator[tuple[str, str]]:
    messages = spec.messages
    if messages.roles:
        yield "roles", ", ".join(messages.roles)
    if messages.content_parts:
        yield "content", ", ".join(f"{part} {support}" for part, support in messages.content_parts.items())
    for name in type(messages).model_fields:
        value = getattr(messages, name)
        if isinstance(value, Entry):
            yield name, _joined(value.support.value, value.patch and value.patch.value, value.note)
    if messages.single_system:
        single = messages.single_system
        yield "single_system", "only in front" if isinstance(single, bool) else f"only in front: {', '.join(single)}"
    if messages.content_as_string:
        yield "content_as_string", "lists of text become one string"
    replay = messages.assistant_reasoning_in
    if replay is not None and replay.field is not None:
        yield "earlier reasoning in", _joined(replay.field, replay.alias)
    for rule in messages.rules:
        yield "rule", rule.value


def _conflicts(spec: ProviderSpec) -> Iterator[tuple[str, str, str]]:
    for conflict in spec.conflicts:
        patch = conflict.patch.value if conflict.patch is not None else "-"
        yield " + ".join(conflict.when), str(conflict.result), _joined(patch, conflict.note)


def _answers(spec: ProviderSpec) -> Iterator[tuple[str, str]]:
    reasoning, streaming = spec.reasoning, spec.streaming
    fields = [field for field in (reasoning.out_field, reasoning.stream_field, reasoning.alt_stream_field) if field]
    if fields or reasoning.think_tags:
        yield "reasoning", _joined(*fields, "think tags" if reasoning.think_tags else None, reasoning.note)
    yield "usage in streams", streaming.usage.value
    yield "errors", spec.errors.envelope.value
    if spec.context.overflow is not Overflow.ERROR:
        yield "too long a request", _joined(spec.context.overflow.value, spec.context.note)


def _models(spec: ProviderSpec) -> Iterator[tuple[str, ...]]:
    if not spec.models:
        return
    yield "ID", "CANONICAL", "CONTEXT", "OUTPUT", "IN", "OUT", "CACHED", "STATUS"
    for model in spec.models:
        prices = (_price(model.input), _price(model.output), _price(model.cached_input))
        limits = (_count(model.context_window), _count(model.max_output_tokens))
        yield model.id, model.canonical, *limits, *prices, _status(model)


def _status(model: ModelSpec) -> str:
    return f"{model.status} on {model.retired_on}" if model.retired_on else model.status.value


def _price(price: Decimal | None) -> str:
    return "-" if price is None else f"{price:f}"


def _count(count: int | None) -> str:
    return "-" if count is None else str(count)


def _number(bound: float | None) -> str:
    return "…" if bound is None else f"{bound:g}"


def _sources(sources: tuple[str, ...]) -> str:
    return f"[{', '.join(sources)}]" if sources else ""


def _joined(*parts: str | None) -> str:
    return "; ".join(part for part in parts if part)
