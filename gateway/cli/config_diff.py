"""`gateway config diff`: what a reload would change, in the running gateway or from one file to another."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import msgspec
import typer
from rich.text import Text

from gateway.cli import console
from gateway.cli.console import ExitCode
from gateway.cli.options import ConfigFile
from gateway.config.problems import Problem
from gateway.settings import Settings, load_settings

_ANSWER_SECONDS: Final = 60.0


def diff(
    config: ConfigFile = None,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="FILE", help="Compare with this file, not the running gateway.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", help="Where the gateway listens; else as the file says.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a reload would change; nothing is changed. Secrets show as asterisks.

    Asks the running gateway, by the admin key of the file or of GATEWAY_ADMIN_KEY.
    """
    settings = load_settings(config, environ=os.environ)
    told = _compare(settings, against) if against is not None else _ask(settings, url)
    if as_json:
        console.print_json({key: told[key] for key in ("changed", "needs_restart")})
        return
    out = console.out()
    for change in told["changed"]:
        out.print(_line(change))
    for key in told["needs_restart"]:
        out.print(Text.assemble(("! ", "bold yellow"), f"{key} needs a restart"))
    if not (told["changed"] or told["needs_restart"]):
        out.print("A reload would change nothing.")


def _compare(settings: Settings, against: Path) -> Mapping[str, Any]:
    from gateway.reload.differences import differences, keep_until_restart

    before = load_settings(against, environ=os.environ)
    kept, needs_restart = keep_until_restart(before, settings)
    return {"changed": msgspec.to_builtins(differences(before, kept)), "needs_restart": needs_restart}


def _ask(settings: Settings, url: str | None) -> Mapping[str, Any]:
    import httpx2

    admin_key = settings.auth.admin_key
    if admin_key is None:
        console.fail("the running gateway tells whoever has its admin key. Set auth.admin_key, or use --against.")
    address = (url or _address(settings)).rstrip("/")
    try:
        answer = httpx2.post(
            f"{address}/admin/reload",
            params={"dry_run": "true"},
            headers={"x-api-key": admin_key.get_secret_value()},
            timeout=_ANSWER_SECONDS,
            trust_env=False,
        )
        told: Mapping[str, Any] = answer.json()
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol):
        console.fail(f"'{address}' is no address of a gateway. It begins with http:// or https://.", ExitCode.USAGE)
    except (httpx2.HTTPError, ValueError) as error:
        reason = str(error) or type(error).__name__
        console.fail(f"no gateway answers at {address} ({reason}). Start it, or use --url.", ExitCode.UNREACHABLE)
    if answer.status_code != httpx2.codes.OK:
        _refused(address, answer.status_code, told.get("error", {}))
    return told


def _refused(address: str, status: int, error: Mapping[str, Any]) -> NoReturn:
    if error.get("code") == "invalid_configuration":
        # It reads its own file, in its own environment, which need not be ours.
        for problem in error.get("problems", ()):
            console.err().print(Text(str(msgspec.convert(problem, Problem))))
        raise typer.Exit(ExitCode.CONFIG)
    console.fail(f"the gateway at {address} answers {status}: {error.get('message', 'no reason')}")


def _address(settings: Settings) -> str:
    # Nothing is bound here: whoever listens on every address is asked on the loopback one.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.server.host, settings.server.host)  # noqa: S104
    return f"http://[{host}]:{settings.server.port}" if ":" in host else f"http://{host}:{settings.server.port}"


def _line(change: Mapping[str, Any]) -> Text:
    before, after = (_text(change[side]) for side in ("before", "after"))
    if change["before"] is None:
        return Text.assemble(("+ ", "bold green"), f"{change['path']}: {after}")
    if change["after"] is None:
        return Text.assemble(("- ", "bold red"), f"{change['path']}: {before}")
    return Text.assemble(("~ ", "bold"), f"{change['path']}: {before} -> {after}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
