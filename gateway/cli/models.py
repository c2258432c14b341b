"""`gateway models`: the catalogue, what a configuration serves from it, and everything that is known of one model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.text import Text

from adapters.capabilities import STRUCTURED_OUTPUTS, input_modalities, output_modalities, usable_parameters
from adapters.catalogue.merged import all_records, successor_of
from adapters.catalogue.record import UNITS, Life, ModelRecord, long_prices, usd
from adapters.registry import load_spec, provider_types
from adapters.spec import ProviderSpec
from adapters.target import Target
from gateway.catalog import Catalog, Model
from gateway.cli.console import ExitCode, fail, out, print_json
from gateway.cli.options import ConfigFile
from gateway.settings import load_settings

app = typer.Typer(help="List models with prices, limits and what they can do.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_COLUMNS: Final = ("MODEL", "TARGET", "CONTEXT", "OUTPUT", "USD IN", "USD OUT", "CACHED", "CAN", "STATE", "PRICE FROM")
_CAPABILITIES: Final = {"tools": "tools", STRUCTURED_OUTPUTS: "schema", "logprobs": "logprobs"}
"""What most people choose a model by, with a short word for each."""
_STYLES: Final[Mapping[str, str]] = {
    Life.RETIRED: "bold red",
    Life.ENDING: "yellow",
    Life.DOUBTED: "yellow",
    Life.DEPRECATED: "yellow",
}


@app.callback(invoke_without_command=True)
def models(context: typer.Context, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """The models of a configuration, or of the whole catalogue; prices in USD per million tokens."""
    if context.invoked_subcommand is None:
        list_models(config, every=False, as_json=as_json)
    elif config is not None or as_json:
        fail(f"options go behind '{context.invoked_subcommand}'", ExitCode.USAGE)


@app.command("list")
def list_models(
    config: ConfigFile = None,
    every: Annotated[bool, typer.Option("--all", help="Every model the catalogue knows, configured or not.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the models of a configuration with price, limits, capabilities and state."""
    today = date.today()
    rows = list(_known(today)) if every else list(_configured(_catalog(config).models.values(), today))
    if as_json:
        print_json(rows)
    else:
        _print_table([_cells(row) for row in rows])


@app.command("show")
def show(
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A model, another name of one, or TYPE/ID of the catalogue.")
    ],
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Show everything that is known of one model."""
    today = date.today()
    catalog = _catalog(config)
    model = catalog.resolve(name)
    found = list(_configured([model], today)) if model is not None else [*_by_catalogue_name(name, today)]
    if not found:
        near = catalog.nearest(name)
        hint = f" Did you mean: {', '.join(near)}?" if near else " `gateway models list --all` shows what is known."
        fail(f"there is no model '{name}'.{hint}", ExitCode.USAGE)
    if as_json:
        print_json(found)
        return
    for number, row in enumerate(found):
        if number:
            out().print()
        _print_page(row)


def _catalog(config: Any) -> Catalog:
    return Catalog.build(load_settings(config, environ=os.environ))


def _configured(models: Iterable[Model], today: date) -> Iterator[dict[str, Any]]:
    """A row for each target of the configured *models*."""
    for model in models:
        for target in model.targets:
            yield {"model": model.id, "target": target.name, **_target_facts(target, today)}


def _known(today: date) -> Iterator[dict[str, Any]]:
    """A row for each model of the catalogue, under its name across providers."""
    for type_id in provider_types():
        spec = load_spec(type_id)
        for record in all_records(spec):
            yield {"model": record.canonical, "target": f"{spec.id}/{record.id}", **_record_facts(spec, record, today)}


def _by_catalogue_name(name: str, today: date) -> Iterator[dict[str, Any]]:
    return (row for row in _known(today) if name in (row["target"], row["model"]))


def _target_facts(target: Target, today: date) -> dict[str, Any]:
    record = target.record or ModelRecord(target.model)
    facts = _record_facts(target.spec, record, today, target)
    if target.price is not None:
        prices = msgspec.structs.replace(
            record,
            input_ptoken=target.price.input_ptoken,
            output_ptoken=target.price.output_ptoken,
            cached_input_ptoken=target.price.cached_input_ptoken,
            long=target.price.long,
            long_prompts_cost_more=record.long_prompts_cost_more and record.price == target.price,
        )
        facts["price"] = _prices(prices)
        facts["long_prompts"] = _dearer(prices)
    return {
        **facts,
        "context_window": target.context_window,
        "max_output_tokens": target.max_output_tokens or record.max_output_tokens,
        "price_from": target.price_from or facts["price_from"],
        "traits": dict(target.traits),
    }


def _record_facts(spec: ProviderSpec, record: ModelRecord, today: date, target: Target | None = None) -> dict[str, Any]:
    target = target or Target(f"{spec.id}/{record.id}", spec.id, record.id, spec, record=record)
    life = record.life(today) if record.sources else None
    ending = life in (Life.RETIRED, Life.ENDING, Life.DEPRECATED)
    return {
        "canonical": record.canonical or spec.canonical(record.id),
        "kind": record.kind.value,
        "context_window": record.context_window,
        "max_output_tokens": record.max_output_tokens,
        "price": _prices(record),
        "price_from": record.sources[0] if record.prices else "",
        "long_prompts": _dearer(record),
        "input_modalities": list(input_modalities(target)),
        "output_modalities": list(output_modalities(target)),
        "supported_parameters": sorted(usable_parameters(target)),
        "state": life.value if life is not None else None,
        "retired_on": record.retired_on.isoformat() if record.retired_on is not None else None,
        "successor": successor_of(spec, record) if ending else None,
        "sources": list(record.sources),
        "traits": {},
    }


def _prices(record: ModelRecord) -> dict[str, str]:
    """USD for a million tokens or characters, or an hour, by what is paid for."""
    prices = record.prices
    return {unit.label: f"{usd(prices[unit.field], units=unit.per):f}" for unit in UNITS if unit.field in prices}


def _dearer(record: ModelRecord) -> str | None:
    return long_prices(record) if record.long or record.long_prompts_cost_more else None


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    price = row["price"]
    can = [word for name, word in _CAPABILITIES.items() if name in row["supported_parameters"]]
    can += ["images"] if "image" in row["input_modalities"] else []
    return (
        row["model"],
        row["target"],
        str(row["context_window"] or "-"),
        str(row["max_output_tokens"] or "-"),
        price.get("input", "-"),
        price.get("output", "-"),
        price.get("cached input", "-"),
        " ".join(can) or "-",
        row["state"] or "-",
        row["price_from"] or "-",
    )


def _print_table(rows: list[tuple[str, ...]]) -> None:
    lines = [_COLUMNS, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        text = Text()
        for cell, width in zip(line, widths, strict=True):
            text.append(cell, "bold" if number == 0 else _STYLES.get(cell, "")).append(" " * (width - len(cell) + 2))
        text.rstrip()
        out().print(text)


def _print_page(row: dict[str, Any]) -> None:
    out().print(Text.assemble((row["target"], "bold"), f"  {row['canonical']}, {row['kind']}"))
    prices = [f"{label} {figure}" for label, figure in row["price"].items()]
    state = row["state"] or "unknown"
    if row["retired_on"]:
        state += f", {'since' if row['state'] == Life.RETIRED else 'until'} {row['retired_on']}"
    lines = {
        "asked by": row["model"],
        "context": f"{row['context_window'] or 'unknown'} tokens",
        "output": f"{row['max_output_tokens'] or 'unknown'} tokens",
        "price": f"{', '.join(prices)} USD" if prices else "unknown",
        "by": row["price_from"],
        "dearer": f"for long prompts: {row['long_prompts']}" if row["long_prompts"] else "",
        "state": state,
        "successor": row["successor"],
        "reads": ", ".join(row["input_modalities"]),
        "gives": ", ".join(row["output_modalities"]),
        "takes": ", ".join(row["supported_parameters"]),
        "traits": ", ".join(f"{name} {word}" for name, word in row["traits"].items()),
    }
    for title, text in lines.items():
        if text:
            out().print(Text(f"  {title:10} {text}"))
