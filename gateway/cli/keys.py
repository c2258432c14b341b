"""`gateway keys`: make, list, show and revoke the keys that clients present."""

from __future__ import annotations

import getpass
import os
import sys
import time
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.catalog import Catalog
from gateway.cli.console import ExitCode, fail, note, out, print_json
from gateway.cli.options import ConfigFile
from gateway.cli.store import with_keys
from gateway.config.units import seconds
from gateway.settings import load_settings
from gateway.storage.key_record import public_fields
from gateway.storage.keys import KeyRecord, KeyStore

app = typer.Typer(no_args_is_help=True, help="Create, list, show and revoke API keys.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
KeyName = Annotated[str, typer.Argument(metavar="KEY", help="An id, or the start of one or of the key itself.")]

_PAGE = 500


@app.command()
def create(
    name: Annotated[str, typer.Option("--name", help="What it is for; shown in lists.")] = "",
    models: Annotated[
        str | None, typer.Option("--models", help="Models it may use, as a,b with * and ?; all when left out.")
    ] = None,
    expires: Annotated[str | None, typer.Option("--expires", help="Lifetime, such as 12h or 90d.")] = None,
    secret_stdin: Annotated[
        bool, typer.Option("--secret-stdin", help="Import an existing key, read from standard input.")
    ] = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it. It cannot be shown again: only a digest is stored."""
    patterns = None if models is None else [part.strip() for part in models.split(",")]
    lifetime = None if expires is None else _lifetime(expires)
    given = _read_secret() if secret_stdin else None

    async def work(store: KeyStore) -> tuple[KeyRecord, str]:
        key, secret = await store.create(name or _default_name(), models=patterns, expires_in=lifetime, secret=given)
        return await store.get(key.id), secret

    record, secret = with_keys(config, work)
    _note_unknown_models(patterns or [], config)
    if as_json:
        print_json(_fields(record) if secret_stdin else {**_fields(record), "secret": secret})
        return
    if secret_stdin:  # whoever brought it has it, and a log is no place for it
        note(f"{record.key.id} ({record.key.name}) made of the key that was read")
        return
    note(f"{record.key.id} ({record.key.name}) made; the key is shown only now:")
    # Alone on standard output, so that KEY=$(gateway keys create) works.
    sys.stdout.write(secret + "\n")


@app.command("list")
def list_keys(config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show all keys, newest first."""

    async def work(store: KeyStore) -> list[KeyRecord]:
        records: list[KeyRecord] = []
        while page := await store.page(limit=_PAGE, after=records[-1].key.id if records else None):
            records += page
        return records

    records = with_keys(config, work)
    if as_json:
        print_json([_fields(record) for record in records])
        return
    if not records:
        note("no keys yet; `gateway keys create` makes one")
        return
    rows = [("ID", "NAME", "KEY", "MODELS", "CREATED (UTC)", "EXPIRES (UTC)", "STATE")]
    for record in records:
        key = record.key
        times = (_shown_time(record.created_at), _shown_time(key.expires_at) or "never")
        rows.append((key.id, key.name, f"{key.prefix}…", _models(record), *times, _state(record)))
    # By hand, since rich's tables shorten ids to fit a narrow terminal or a pipe.
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        out().print(line.rstrip(), markup=False)


@app.command()
def show(key: KeyName, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """Show one key."""

    async def work(store: KeyStore) -> KeyRecord:
        return await store.get(key)

    record = with_keys(config, work)
    if as_json:
        print_json(_fields(record))
        return
    for label, value in (
        ("id", record.key.id),
        ("name", record.key.name),
        ("key", f"{record.key.prefix}…"),
        ("models", _models(record)),
        ("created", f"{_shown_time(record.created_at)} UTC"),
        ("expires", f"{_shown_time(record.key.expires_at)} UTC" if record.key.expires_at else "never"),
        ("state", _state(record)),
    ):
        out().print(f"{label:8} {value}", markup=False)


@app.command()
def revoke(
    key: KeyName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Make a key useless, within 2 seconds in every running gateway. There is no way back."""

    async def find(store: KeyStore) -> KeyRecord:
        return await store.get(key)

    async def work(store: KeyStore) -> KeyRecord:
        return await store.revoke(record.key.id)

    record = with_keys(config, find)
    if not yes:
        if not sys.stdin.isatty():
            fail("revoking cannot be undone; say --yes where nobody can be asked", ExitCode.USAGE)
        typer.confirm(f"Revoke {record.key.id} ({record.key.name}, {record.key.prefix}…)?", abort=True, err=True)
    record = with_keys(config, work)
    if as_json:
        print_json(_fields(record))
    else:
        out().print(f"{record.key.id} ({record.key.name}) is revoked", markup=False)


def _note_unknown_models(patterns: list[str], config: Path | None) -> None:
    """Say which patterns fit no model. That is no mistake where the model is to come, but an alias would never fit."""
    catalog = Catalog.build(load_settings(config, environ=os.environ))
    for pattern in patterns:
        if any(fnmatchcase(model_id, pattern) for model_id in (*catalog.models, *catalog.exposed)):
            continue
        model = catalog.resolve(pattern)
        if model is None:
            note(f"no model is called '{pattern}' so far")
        elif model.id != pattern:  # one of many fine-tunes is called just that
            note(f"'{pattern}' is another name of '{model.id}', but keys go by the model's own: --models {model.id}")


def _lifetime(expires: str) -> float:
    try:
        return seconds(expires)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--expires") from None


def _read_secret() -> str:
    # On a terminal without echo; the key must not stay on the screen.
    return getpass.getpass("Key: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")


def _default_name() -> str:
    return f"made {datetime.now(UTC):%Y-%m-%d %H:%M}"


def _fields(record: KeyRecord) -> dict[str, Any]:
    shown = {
        name: _iso_time(value) if isinstance(value, datetime) else value
        for name, value in public_fields(record).items()
    }
    return {**shown, "state": _state(record)}


def _models(record: KeyRecord) -> str:
    return "all" if record.key.models is None else ", ".join(record.key.models) or "none"


def _state(record: KeyRecord) -> str:
    if record.revoked_at is not None:
        return "revoked"
    return "live" if record.is_live(time.time()) else "expired"


def _iso_time(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _shown_time(at: float | None) -> str:
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
