"""Reads the price list of genai-prices, a Python file of nothing but literals, without running any of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from adapters.catalogue.litellm_prices import PriceListError
from adapters.catalogue.record import MILLION, ModelRecord, pico
from adapters.spec import ModelStatus
from adapters.types import LongPrice

_NAME: Final = "constructor"
_BY_TOKEN: Final = ("input_mtok", "output_mtok", "cache_read_mtok")
_Node = dict[str, Any]


def read_genai_prices(
    data: bytes, names: Mapping[str, str], today: date
) -> tuple[dict[str, dict[str, ModelRecord]], list[str]]:
    """Records by provider type and by every id a model goes by, in lower case; and remarks on what was left out.

    *names* maps the list's name of a provider to its type. Prices are those of *today*.
    """
    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError) as error:
        raise PriceListError(f"this is no Python file: {error}") from None
    found: dict[str, dict[str, ModelRecord]] = {}
    remarks: list[str] = []
    for provider in _list_of_providers(module):
        type_id = names.get(str(_keyword(provider, "id")))
        models = _keyword(provider, "models")
        if type_id is None or not isinstance(models, list):
            continue
        for model in models:
            if not isinstance(model, dict):
                continue
            record = _record(model, today)
            if record is None:
                remarks.append(f"{type_id}/{model.get('id')}: left out: its price depends on more than the day")
                continue
            for name in {record.id, *_spelt_out(model.get("match"))}:
                found.setdefault(type_id, {}).setdefault(name.lower(), record)
    if not found:
        raise PriceListError("no models were found; the list may be written in another way by now")
    return found, remarks


def _list_of_providers(module: ast.Module) -> Iterator[ast.Call]:
    for statement in module.body:
        target = getattr(statement, "target", None) or next(iter(getattr(statement, "targets", ())), None)
        value = getattr(statement, "value", None)
        if isinstance(target, ast.Name) and target.id == "providers" and isinstance(value, ast.List):
            yield from (item for item in value.elts if isinstance(item, ast.Call))


def _keyword(call: ast.Call, name: str) -> Any:
    return next((_plain(keyword.value) for keyword in call.keywords if keyword.arg == name), None)


def _plain(node: ast.expr) -> Any:
    """What *node* stands for: constants, lists, decimals and dates; any other call as a mapping of its keywords."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_plain(item) for item in node.elts]
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    arguments = [_plain(argument) for argument in node.args]
    try:
        if name == "Decimal":
            return Decimal(*arguments)
        if name == "date":
            return date(*arguments)
    except (InvalidOperation, TypeError, ValueError):
        return None
    return {_NAME: name, **{keyword.arg: _plain(keyword.value) for keyword in node.keywords if keyword.arg}}


def _record(model: _Node, today: date) -> ModelRecord | None:
    prices = _current(model.get("prices"), today)
    if prices is None:
        return None
    figures = {name: _figure(prices.get(name), 0) for name in (*_BY_TOKEN, "input_mchars")}
    tiered = any(isinstance(prices.get(name), dict) for name in figures)
    long = tuple(_long(prices)) if tiered else ()
    window = model.get("context_window")
    return ModelRecord(
        id=str(model.get("id")),
        context_window=window if isinstance(window, int) else None,
        input_ptoken=figures["input_mtok"],
        output_ptoken=figures["output_mtok"],
        cached_input_ptoken=figures["cache_read_mtok"],
        pcharacter=figures["input_mchars"],
        long=long,
        long_prompts_cost_more=tiered and not long,
        status=ModelStatus.DEPRECATED if model.get("deprecated") is True else ModelStatus.PRODUCTION,
        sources=("genai_prices",),
    )


def _long(prices: _Node) -> Iterator[LongPrice]:
    """What longer prompts cost: a tier holds for the whole of a request whose prompt is longer than its start."""
    tiers = [
        tier for name in _BY_TOKEN if isinstance(prices.get(name), dict) for tier in prices[name].get("tiers") or ()
    ]
    for start in sorted({tier["start"] for tier in tiers if isinstance(tier.get("start"), int)}):
        paid, answer, cached = (_figure(prices.get(name), start + 1) for name in _BY_TOKEN)
        if paid is not None and answer is not None:
            yield LongPrice(start, paid, answer, cached)


def _figure(value: Any, prompt_tokens: int) -> int | None:
    """The price of one unit where the prompt has that many tokens."""
    if isinstance(value, dict):
        found = value.get("base")
        for tier in value.get("tiers") or ():
            if isinstance(tier.get("start"), int) and prompt_tokens > tier["start"]:
                found = tier.get("price")
        value = found
    return pico(value, units=MILLION) if isinstance(value, Decimal) else None


def _current(prices: Any, today: date) -> _Node | None:
    """The prices that hold on *today*: of several the last that has begun."""
    if isinstance(prices, dict):
        return prices
    current = None
    for conditional in prices if isinstance(prices, list) else ():
        constraint = conditional.get("constraint")
        if constraint is None:
            current = conditional.get("prices")
        elif constraint[_NAME] != "StartDateConstraint":
            return None
        elif isinstance(begin := constraint.get("start_date"), date) and begin <= today:
            current = conditional.get("prices")
    return current if isinstance(current, dict) else None


def _spelt_out(rule: Any) -> Iterator[str]:
    """The names a matching rule holds in full; what it matches by a part of the name is not followed."""
    if isinstance(rule, dict):
        if isinstance(name := rule.get("equals"), str):
            yield name
        for part in rule.get("or_") or ():
            yield from _spelt_out(part)
