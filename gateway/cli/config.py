"""`gateway config`: the configuration as the gateway sees it, and the schema of its file."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
import yaml

from gateway.cli import console
from gateway.cli.config_diff import diff
from gateway.cli.options import ConfigFile
from gateway.config.schema import NOT_IN_FILE
from gateway.settings import Settings, load_settings

app = typer.Typer(
    no_args_is_help=True, help="Show the effective configuration, its schema, and what a reload would change."
)
app.command("diff")(diff)


@app.command()
def show(
    config: ConfigFile = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON in place of YAML.")] = False,
) -> None:
    """Print the effective configuration: file, environment and defaults together, secrets masked."""
    settings = load_settings(config, environ=os.environ)
    shown = _without_empty(settings.model_dump(mode="json"))
    if as_json:
        console.print_json(shown)
        return
    for note in settings.notes:
        console.note(note)
    typer.echo(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True, width=120), nl=False)


def _without_empty(value: Any) -> Any:
    """*value* without what is not set, at any depth."""
    if isinstance(value, dict):
        kept = {key: _without_empty(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in (None, "", {}, [])}
    return [_without_empty(inner) for inner in value] if isinstance(value, list) else value


@app.command()
def schema() -> None:
    """Print the JSON schema of the configuration file, for editors."""
    console.print_json(json_schema())


def json_schema() -> dict[str, Any]:
    """The schema of the file as it is written: whatever is no free text may also be a `${...}` reference."""
    described = Settings.model_json_schema()
    for name in NOT_IN_FILE:
        del described["properties"][name]
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", **described, "title": "gateway"}
    for section in (described, *described["$defs"].values()):
        for name, field in section.get("properties", {}).items():
            section["properties"][name] = _or_reference(field)
    return described


def _or_reference(field: dict[str, Any]) -> dict[str, Any]:
    shapes = field.get("anyOf", [field])
    if not any(
        shape.get("type") in ("integer", "number", "boolean") or {"pattern", "enum"} & set(shape) for shape in shapes
    ):
        return field
    options = field.get("anyOf") or [
        {key: field[key] for key in field if key not in ("description", "title", "default")}
    ]
    about: dict[str, Any] = {key: field[key] for key in ("title", "description", "default") if key in field}
    return {**about, "anyOf": [*options, {"type": "string", "pattern": r"\$\{"}]}
