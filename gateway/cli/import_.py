"""`gateway import`: makes a configuration of another gateway's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from gateway.cli import console
from gateway.cli.console import ExitCode
from gateway.cli.files import read_text, write_new

if TYPE_CHECKING:
    from gateway.importing.report import Report

app = typer.Typer(no_args_is_help=True, help="Make a configuration of another gateway's.")

_STYLES = {"mapped": "green", "approximated": "yellow", "not yet": "cyan", "dropped": "red"}


@app.callback()
def _of() -> None:
    """Keeps `import litellm` a command of its own, beside those still to come."""


@app.command("litellm")
def litellm(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The config.yaml of LiteLLM's proxy.")],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - for the terminal.")] = "-",
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
) -> None:
    """Turn a LiteLLM configuration into ours, and report what became of each key.

    No secret is resolved or copied: what stands in the file itself becomes a variable to export.
    """
    from gateway.importing.litellm import NotLiteLLMError, import_config
    from gateway.importing.located import UnreadableYamlError
    from gateway.importing.render import render

    try:
        plan, report = import_config(read_text(file))
    except (UnreadableYamlError, NotLiteLLMError) as error:
        console.fail(f"{file}: {error}", ExitCode.CONFIG)
    text = render(plan, report, file.name)
    if output != "-":
        write_new(Path(output), text, force=force)
    if as_json:
        console.print_json(_report(report, text, output))
        return
    if output == "-":
        typer.echo(text, nl=False)
    _print(report, output)


def _print(report: Report, output: str) -> None:
    """The report: beside the configuration when that goes to the terminal, else in its place."""
    from gateway.importing.report import Fate

    out = console.err() if output == "-" else console.out()
    width = max((len(str(note.line)) for note in report.notes), default=1)
    for fate in Fate:
        notes = report.of(fate)
        if notes:
            out.print(Text(f"{fate.value} ({len(notes)})", style=_STYLES[fate.value]))
        for note in notes:
            out.print(Text(f"  line {note.line:{width}}  {' '.join(note.text.split())}"))
    if report.variables:
        out.print(Text("to export"))
        for name, purpose in report.variables.items():
            out.print(Text(f"  {name}  {purpose}"))
    if output != "-":
        out.print(Text(f"{output} written. Check it with: gateway check -c {output}"))


def _report(report: Report, text: str, output: str) -> dict[str, Any]:
    return {
        "output": None if output == "-" else output,
        "config": text if output == "-" else None,
        "variables": report.variables,
        "notes": [
            {"fate": note.fate.value, "line": note.line, "path": note.path, "text": " ".join(note.text.split())}
            for note in sorted(report.notes, key=lambda note: note.line)
        ],
    }
