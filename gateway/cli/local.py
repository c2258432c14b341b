"""`gateway local`: the models of the bundled engine, and whether this machine can run them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.text import Text

from gateway import interruption
from gateway.cli.console import ExitCode, err, fail, note, out, print_json
from local_engine.doctor import Finding, Verdict, examine
from local_engine.download import Progress as OnProgress
from local_engine.errors import LocalEngineError, ModelDamagedError, UnreachableError
from local_engine.pull import pull as fetch
from local_engine.registry import DEFAULT_MODEL, KnownModel, default_store, known_models, remove
from local_engine.weights import check_weights

app = typer.Typer(no_args_is_help=True, help="Fetch and manage the bundled engine's models.")

_STEPS_OF_PLAIN_LINES = 10
_STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "bold red"}

_json = typer.Option(False, "--json", help="Print JSON.")


@app.command("pull")
def pull(
    name: str = typer.Argument(DEFAULT_MODEL, help="A model of `gateway local list`."),
    offline: bool = typer.Option(False, "--offline", help="Fail rather than use the network."),
    as_json: bool = _json,
) -> None:
    """Fetch a model, unless it is here and intact. An interrupted download goes on where it ended."""
    try:
        path = pull_showing_progress(name, offline=offline or None)
    except UnreachableError as error:
        fail(str(error), ExitCode.UNREACHABLE)
    except LocalEngineError as error:
        fail(str(error))
    if as_json:
        print_json({"name": name, "path": str(path), "size_bytes": path.stat().st_size})
    else:
        out().print(str(path))


@app.command("list")
def list_models(as_json: bool = _json) -> None:
    """Show the models that can be fetched, and which of them are here."""
    store = default_store()
    rows = [
        {"name": model.name, "state": _state(model, store), "size_bytes": model.size_bytes, "license": model.license}
        | {"context": model.context, "path": str(store / model.file_name), "about": model.about}
        for model in known_models()
    ]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        out().print(f"{row['name']}  {row['state']}  {model_size(int(str(row['size_bytes'])))}  {row['license']}")
        out().print(Text(f"  {row['about']}", style="dim"))
        out().print(Text(f"  {row['path']}", style="dim"))


@app.command("rm")
def rm(name: str = typer.Argument(help="A model of `gateway local list`."), as_json: bool = _json) -> None:
    """Delete a model's files from this machine."""
    try:
        removed = remove(name, default_store())
    except LocalEngineError as error:
        fail(str(error))
    if as_json:
        print_json({"name": name, "removed": [str(path) for path in removed]})
    elif removed:
        out().print(f"removed {name}")
    else:
        fail(f"the model {name} is not in {default_store()}")


@app.command("doctor")
def doctor(as_json: bool = _json) -> None:
    """Look at everything a local model needs, and run one."""
    findings = interruption.run(_examine(show=not as_json))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    if any(finding.verdict is Verdict.FAIL for finding in findings):
        raise typer.Exit(int(ExitCode.FAILED))


def pull_showing_progress(name: str, *, offline: bool | None = None) -> Path:
    """`local_engine.pull.pull` into the default store, with a bar on standard error; raises what that raises."""
    with _progress(name) as on_progress:
        return fetch(name, default_store(), offline=offline, progress=on_progress, notify=note)


async def _examine(show: bool) -> list[Finding]:
    findings = []
    async for finding in examine(default_store()):
        findings.append(finding)
        if show:
            word = finding.verdict.value.upper()
            out().print(Text.assemble((f"{word:<5}", _STYLES[finding.verdict]), f"{finding.subject}: {finding.detail}"))
            if finding.fix and finding.verdict is not Verdict.OK:
                out().print(f"     {finding.fix}", markup=False)
    return findings


def _state(model: KnownModel, store: Path) -> str:
    path = store / model.file_name
    if not path.is_file():
        return "not here"
    try:
        check_weights(path, model)
    except ModelDamagedError:
        return "damaged"
    return "here"


def model_size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.0f} MB"


@contextmanager
def _progress(name: str) -> Iterator[OnProgress]:
    """A bar on a terminal, else a line for every tenth: logs of a build should show that something happens."""
    if not err().is_terminal:
        yield _print_tenths(name)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=err(), transient=True) as bar:
        task = bar.add_task(name, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _print_tenths(name: str) -> OnProgress:
    shown = -1

    def on_progress(done: int, total: int | None) -> None:
        nonlocal shown
        step = done * _STEPS_OF_PLAIN_LINES // total if total else 0
        if step > shown:
            shown = step
            of_all = f" of {model_size(total)}" if total else ""
            err().print(f"{name}: {model_size(done)}{of_all}")

    return on_progress
