"""What is told of a model: one entry that OpenAI, Anthropic, OpenRouter and Codex clients all understand."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, date, datetime, time
from typing import Any, Final

from adapters.capabilities import input_modalities, output_modalities, usable_parameters
from adapters.catalogue.record import usd
from adapters.target import Target
from adapters.types import Price
from gateway.catalog import Model

Entry = dict[str, Any]

_CODEX_INSTRUCTIONS: Final = (
    "You are a coding agent that works in a terminal on the user's machine. Read the code before you change it, use "
    "the tools you are given to look, edit and run, make the smallest change that does what was asked, check that it "
    "works, and end with a short account of what you did."
)


def describe(model: Model) -> Entry:
    """What clients are told: what holds whichever of the targets answers, and the first one's price."""
    first = model.targets[0]
    created = datetime.combine(first.spec.as_of, time(), UTC)
    entry: Entry = {
        **describe_name(model),
        "object": "model",
        "created": int(created.timestamp()),
        "owned_by": first.provider,
        "type": "model",
        "created_at": created.isoformat().replace("+00:00", "Z"),
        "context_length": _least(target.context_window for target in model.targets),
        "max_output_tokens": _least(_most_output(target) for target in model.targets),
        "architecture": {
            "input_modalities": _in_all(input_modalities(target) for target in model.targets),
            "output_modalities": _in_all(output_modalities(target) for target in model.targets),
        },
        "supported_parameters": sorted(_in_all(sorted(usable_parameters(target)) for target in model.targets)),
        "expiration_date": _expiration(model.targets),
    }
    if first.price is not None:
        entry["pricing"] = _pricing(first.price)
    return entry


def describe_name(model: Model) -> Entry:
    """The part of an entry that the fine-tunes of a pattern do not share."""
    return {"id": model.id, "display_name": model.id, "name": model.id, "description": _description(model)}


def operator_part(model: Model) -> Entry:
    """What only the operator is told."""
    targets = [
        {
            "provider": target.provider,
            "model": target.model,
            "supported_parameters": sorted(usable_parameters(target)),
            "price_from": target.price_from or None,
            "status": target.record.status.value if target.record is not None else None,
        }
        for target in model.targets
    ]
    return {"gateway": {"targets": targets, "strategy": model.strategy}}


def with_health(part: Entry, model: Model, unusable: Collection[str]) -> Entry:
    """*part*, the operator's of *model*, with what is known of its targets at this moment."""
    told = part["gateway"]
    targets = [
        {**target, "healthy": model.targets[place].name not in unusable} for place, target in enumerate(told["targets"])
    ]
    return {"gateway": {**told, "targets": targets}}


def codex_entry(entry: Entry, place: int) -> Entry:
    """A model as Codex reads it; without all of these it knows nothing of a model, and says so."""
    return {
        "slug": entry["id"],
        "display_name": entry["display_name"],
        "description": entry["description"],
        "default_reasoning_level": None,
        "supported_reasoning_levels": [],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": place,
        "context_window": entry["context_length"],
        "max_context_window": entry["context_length"],
        "input_modalities": entry["architecture"]["input_modalities"],
        "supports_parallel_tool_calls": "parallel_tool_calls" in entry["supported_parameters"],
        "truncation_policy": {"mode": "tokens", "limit": 10_000},
        "support_verbosity": False,
        "default_verbosity": None,
        "apply_patch_tool_type": None,
        "experimental_supported_tools": [],
        "supports_reasoning_summaries": False,
        "upgrade": None,
        "availability_nux": None,
        "base_instructions": _CODEX_INSTRUCTIONS,
    }


def _description(model: Model) -> str:
    answered = "Answered by " + ", then ".join(target.name for target in model.targets) + "."
    if not model.many:
        return answered
    return f"Fine-tunes of {model.targets[0].model}: put the name of one for '*'. {answered}"


def _pricing(price: Price) -> dict[str, str]:
    pricing = {"prompt": f"{usd(price.input_ptoken):f}", "completion": f"{usd(price.output_ptoken):f}"}
    if price.cached_input_ptoken is not None:
        pricing["input_cache_read"] = f"{usd(price.cached_input_ptoken):f}"
    return pricing


def _most_output(target: Target) -> int | None:
    if target.max_output_tokens is not None or target.record is None:
        return target.max_output_tokens
    return target.record.max_output_tokens


def _expiration(targets: Iterable[Target]) -> str | None:
    """The day the last target goes; None while one has no such day."""
    ends: list[date] = []
    for target in targets:
        if target.record is None or target.record.retired_on is None:
            return None
        ends.append(target.record.retired_on)
    return max(ends).isoformat()


def _in_all(lists: Iterable[Iterable[str]]) -> list[str]:
    """What stands in each of *lists*, in the order of the first."""
    first, *others = map(list, lists)
    return [word for word in first if all(word in other for other in others)]


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
