"""`gateway providers`: which types a configuration may name, and what is known about each."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from adapters.registry import UnknownProviderTypeError, load_spec, preset_types, provider_types
from adapters.spec import Kind, ProviderSpec
from adapters.vocabulary import Verified
from gateway.cli.console import ExitCode, fail, out, print_json
from gateway.cli.provider_facts import Section, everything, sections

app = typer.Typer(no_args_is_help=True, help="List provider types, and show what is known about one.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_STYLES = {
    Verified.RUN: "green", Verified.SIMULATOR: "green", Verified.DOCUMENTED: "", Verified.ASSUMED: "yellow",
    "native": "green", "patched": "cyan", "by model": "", "ignored": "dim", "dropped": "yellow", "refused": "red",
}  # fmt: skip
_COLUMNS = {
    "type": "TYPE", "name": "NAME", "kind": "KIND", "inherits": "INHERITS", "base_url": "BASE URL", "env": "KEY IN",
    "verified": "VERIFIED", "as_of": "AS OF",
}  # fmt: skip


@app.command("list")
def list_types(as_json: AsJson = False) -> None:
    """Show every provider type, presets included."""
    rows = [_row(load_spec(name)) for name in sorted((*provider_types(), *preset_types()))]
    if as_json:
        print_json(rows)
        return
    _print_table([list(_COLUMNS.values()), *([row[key] or "-" for key in _COLUMNS] for row in rows)], head=True)


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="TYPE", help="A type of `gateway providers list`.")],
    as_json: AsJson = False,
) -> None:
    """Show what is known about a provider type, and what becomes of each parameter."""
    try:
        spec = load_spec(name)
    except UnknownProviderTypeError as error:
        fail(str(error), ExitCode.USAGE)
    if as_json:
        print_json(everything(spec))
        return
    row = _row(spec)
    out().print(Text.assemble((spec.id, "bold"), f"  {spec.name}"))
    above = f", inherits {spec.inherits}" if spec.inherits else ""
    known = Text(str(row["verified"]), style=_STYLES[spec.verified])
    out().print(Text.assemble(f"{spec.kind}{above}; ", known, f", as of {row['as_of']}"))
    if spec.note:
        out().print(Text(spec.note))
    for section in sections(spec):
        _print_section(section)


@app.command("matrix")
def matrix() -> None:
    """Write what becomes of each parameter at every provider, as the Markdown of docs/providers.md."""
    # Every file is read for it, which no other command needs.
    from gateway.cli.provider_matrix import page

    typer.echo(page(), nl=False)


def _row(spec: ProviderSpec) -> dict[str, Any]:
    return {
        "type": spec.id,
        "name": spec.name,
        "kind": spec.kind.value,
        "inherits": spec.inherits,
        "base_url": None if spec.kind is Kind.IN_PROCESS else spec.transport.base_url,
        "env": spec.transport.auth.env,
        "verified": spec.verified.value,
        "as_of": spec.as_of.isoformat(),
    }


def _print_section(section: Section) -> None:
    out().print()
    out().print(Text(section.title, style="bold"))
    _print_table([list(row) for row in section.rows], indent="  ")


def _print_table(rows: list[list[str]], *, indent: str = "", head: bool = False) -> None:
    """Rows in columns as wide as they need to be; rich's own tables shorten what does not fit a narrow terminal."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = Text(indent)
        for cell, width in zip(row, widths, strict=True):
            style = "bold" if head and number == 0 else _STYLES.get(cell, "")
            line.append(cell, style).append(" " * (width - len(cell) + 2))
        line.rstrip()
        out().print(line)
