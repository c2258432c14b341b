"""Words for what pydantic found wrong in a file: what was found, what is allowed, and the nearest match."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from adapters.located_yaml import Path

_SHOWN = 12
_OWN = "own"
"""The type of errors whose message says it all."""


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[tuple[Path, bool, str]]:
    """Every error as its path, whether it is about the key itself, and a message."""
    found = error.errors(include_url=False)
    return [_explain(details, model) for details in found if not _only_follows(details, found)]


def at(path: Path, found: Any, message: str) -> InitErrorDetails:
    """An error of a validator's own about *found*, which stands at *path* below the model it validates."""
    return {"type": PydanticCustomError(_OWN, "{message}", {"message": message}), "loc": path, "input": found}


def raise_all(model: type[BaseModel], errors: list[InitErrorDetails]) -> None:
    """Raise `ValidationError` when there are *errors*."""
    if errors:
        raise ValidationError.from_exception_data(model.__name__, errors)


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` for the nearest of *allowed*, or nothing."""
    choices = [choice for choice in allowed if choice]
    folded = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(word.lower(), folded, n=1, cutoff=0.6)
    return f" Did you mean '{folded[near[0]]}'?" if near else ""


def one_of(allowed: Iterable[str]) -> str:
    """``  (a, b, c)``, or nothing when there are too many to read."""
    choices = list(allowed)
    return f"  ({', '.join(choices)})" if 0 < len(choices) <= _SHOWN else ""


def _explain(details: ErrorDetails, model: type[BaseModel]) -> tuple[Path, bool, str]:
    path: Path = tuple(details["loc"])
    kind, found, context = details["type"], details["input"], details.get("ctx") or {}
    if path and path[-1] == "[key]":
        return path[:-1], True, str(context.get("error") or details["msg"])
    if kind == "extra_forbidden":
        key = str(path[-1])
        allowed = keys_at(model, path[:-1])
        return path, True, f"'{key}' is not a known key here.{did_you_mean(key, allowed)}{one_of(allowed)}"
    if kind == "missing":
        return path[:-1], False, f"the key '{path[-1]}' is missing"
    if kind in ("literal_error", "enum"):
        allowed = [str(part).strip("' ") for part in str(context["expected"]).replace(" or ", ", ").split(",")]
        return path, False, f"{show(found)} is not allowed here.{did_you_mean(str(found), allowed)}{one_of(allowed)}"
    if kind == "value_error":
        return path, False, str(context.get("error") or details["msg"])
    if kind == _OWN:
        return path, False, details["msg"]
    expected = _expected(kind, context, details["msg"])
    if _is_secret(model, path):
        return path, False, f"what stands here is not shown; {expected}"
    return path, False, f"found {_shape(found)}; {expected}"


def _only_follows(details: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """A list is called too short when its entries are wrong, too; the entries' own errors are what helps."""
    place = details["loc"]
    return details["type"] == "too_short" and any(
        len(other["loc"]) > len(place) and other["loc"][: len(place)] == place for other in found
    )


def _expected(kind: str, context: Mapping[str, Any], fallback: str) -> str:
    match kind:
        case "int_parsing" | "int_type" | "int_from_float":
            return "a whole number is expected"
        case "float_parsing" | "float_type" | "decimal_parsing" | "decimal_type":
            return "a number is expected"
        case "bool_parsing" | "bool_type":
            return "true or false is expected"
        case "string_type":
            return "text is expected; put a number or true/false in quotes"
        case "dict_type" | "model_type" | "model_attributes_type" | "mapping_type":
            return "a mapping (key: value) is expected"
        case "list_type" | "tuple_type":
            return "a list is expected"
        case "greater_than_equal":
            return f"at least {context['ge']} is expected"
        case "greater_than":
            return f"more than {context['gt']} is expected"
        case "less_than_equal":
            return f"at most {context['le']} is expected"
        case "too_short":
            return f"at least {context['min_length']} entry is expected"
        case _:
            return fallback[:1].lower() + fallback[1:]


def show(value: Any) -> str:
    """A value as it may stand in a message: short, and readable."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"'{text if len(text) <= 60 else text[:57] + '...'}'"


def _shape(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    return "nothing" if value is None else show(value)


def _is_secret(model: type[BaseModel], path: Path) -> bool:
    annotation: Any = model
    for part in path:
        annotation = _step(annotation, part) or annotation
    return "SecretStr" in str(annotation)


def keys_at(model: type[BaseModel], path: Path) -> list[str]:
    """The keys the model at *path* below *model* takes; empty where there is no model."""
    current: Any = model
    for part in path:
        current = _step(current, part)
    found = _model_in(current)
    return [field.alias or name for name, field in found.model_fields.items()] if found else []


def _step(annotation: Any, part: str | int) -> Any:
    model = _model_in(annotation)
    if model is not None:
        by_key = {field.alias or name: field for name, field in model.model_fields.items()}
        return by_key[str(part)].annotation if str(part) in by_key else None
    for option in _options(annotation):
        arguments = typing.get_args(option)
        if arguments:
            return arguments[0] if isinstance(part, int) else arguments[-1]
    return None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for option in _options(annotation):
        if isinstance(option, type) and not typing.get_args(option) and issubclass(option, BaseModel):
            return option
    return None


def _options(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) is typing.Annotated:
        return _options(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(inner for option in typing.get_args(annotation) for inner in _options(option))
    return (annotation,)
