"""`gateway serve`: from the configuration to a running gateway, and the line to try it with."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from gateway import interruption
from gateway.cli.console import ExitCode, fail, note, out
from gateway.cli.options import ConfigFile
from gateway.cli.readiness import Health, wait_until_ready
from gateway.cli.streams import let_go
from gateway.listening import ListenError, bind, url_of
from gateway.reload.source import Source
from gateway.settings import Settings

if TYPE_CHECKING:
    from gateway.storage.first_key import FirstKey

_READY_SECONDS = 60.0
_READY_WITHOUT_MODEL_SECONDS = 3.0


def serve(
    config: ConfigFile = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes that answer requests.")] = None,
    reload: Annotated[
        bool, typer.Option("--reload/--no-reload", help="Follow changes of the file; SIGHUP reloads in any case.")
    ] = True,
    migrate: Annotated[bool, typer.Option("--migrate", help="Upgrade the tables first, on PostgreSQL too.")] = False,
    show_key: Annotated[
        bool, typer.Option("--show-key", help="Print the first key itself at each start, into a pipe or log too.")
    ] = False,
) -> None:
    """Start the gateway. Without a file: the local model, and every provider whose key is in the environment."""
    from gateway.install_check import NameCollisionError, check_installation

    try:
        check_installation()
    except NameCollisionError as error:
        fail(str(error))
    flags = {"server.host": host, "server.port": port, "server.workers": workers}
    source = Source(config, os.environ, flags)
    settings = source.load()
    for line in settings.notes:
        note(line)
    if settings.server.workers > 1 and sys.platform == "win32":
        fail("several workers need a system other than Windows. Leave --workers out.")
    # Before anything that takes time: who finds the port taken should learn it at once.
    try:
        sock = bind(settings.server.host, settings.server.port)
    except ListenError as error:
        fail(str(error))
    with sock:
        code = _serve(settings, sock, source, watch=reload, migrate=migrate, show_key=show_key)
    if code > interruption.exit_code(0):
        note(interruption.told(code - interruption.exit_code(0)))
    raise typer.Exit(code)


def _serve(
    settings: Settings, sock: socket.socket, source: Source, *, watch: bool, migrate: bool, show_key: bool
) -> int:
    from gateway.start_errors import START_ERRORS, exit_code
    from gateway.telemetry.logging import close_logging, configure_logging

    patience = _READY_SECONDS if _fetch_models(settings) else _READY_WITHOUT_MODEL_SECONDS
    configure_logging(settings.telemetry.log_format, settings.telemetry.log_level)
    try:
        first_key = interruption.run(_prepare(settings, migrate=migrate))
        key = None if first_key is None else key_to_paste(first_key, show=show_key)
        return _run(settings, sock, source, key, patience, watch=watch)
    except START_ERRORS as error:
        fail(str(error), ExitCode(exit_code(error)))
    finally:
        close_logging()


def _run(
    settings: Settings, sock: socket.socket, source: Source, key: str | None, patience: float, *, watch: bool
) -> int:
    from gateway import server
    from gateway.http_server import ServerOptions

    url = url_of(sock)

    async def when_listening() -> None:
        health = await wait_until_ready(url, patience)
        try:
            print_ready(settings, url, key, health)
        except OSError:  # nobody reads it, and that is no reason not to serve, nor to end as failed
            let_go(sys.stdout, 1)

    if settings.server.workers > 1:
        from gateway.workers import supervise

        supervising = supervise(settings, sock, when_listening, source=source, watch=watch)
        return interruption.run(supervising, server.loop_factory())

    from gateway.app import Application

    def create() -> Awaitable[Application]:
        return Application.create(settings, source=source, watch=watch)

    return server.run(create, sock, ServerOptions.of(settings), when_listening)


def _fetch_models(settings: Settings) -> bool:
    """Bring the models the bundled engine is to run; False if one cannot be had, which is said but stops nothing."""
    names = {provider.model for provider in settings.providers.values() if provider.local and not provider.model_path}
    if not names:
        return True
    from gateway.cli.local import pull_showing_progress
    from local_engine.errors import LocalEngineError
    from local_engine.registry import DEFAULT_MODEL

    complete = True
    for name in sorted({name or DEFAULT_MODEL for name in names}):
        try:
            pull_showing_progress(name)
        except LocalEngineError as error:
            note(f"going on without the local model: {error}")
            complete = False
    return complete


async def _prepare(settings: Settings, *, migrate: bool) -> FirstKey | None:
    """Bring the database up to date, once for all workers; returns the key that is there from the first start on."""
    from gateway.storage.prepare import prepare
    from gateway.storage.urls import parse_database_url

    url = settings.storage.database_url.get_secret_value()
    # A shared database belongs to an operator, who makes keys on purpose.
    first_key = settings.auth.mode == "keys" and parse_database_url(url).is_sqlite
    return await prepare(url, migrate=migrate, first_key=first_key)


def key_to_paste(first_key: FirstKey, *, show: bool) -> str:
    """What stands for the key in a line to paste, as a shell reads it within double quotes.

    What is printed may end up in a log that others read, at every start anew. So the key itself is shown once, to who
    sits at the terminal, or where that is asked for; else the shell takes it out of its file.
    """
    if show or (first_key.is_new and sys.stdout.isatty()):
        return first_key.secret
    return f"$(cat {shlex.quote(str(first_key.path.absolute()))})"


def print_ready(settings: Settings, url: str, key: str | None, health: Health) -> None:
    """The lines that end a start: what is amiss, where it listens, a call to paste, how to stop."""
    console = out()
    console.print()
    if not health.ready:
        console.print(Text.assemble(("Not ready: ", "bold yellow"), health.summary))
    elif health.problems:
        console.print(Text.assemble(("Ready, but for ", "bold yellow"), health.summary))
    else:
        console.print(Text("Ready.", style="bold green"))
    console.print(Text(f"OpenAI base URL: {url}/v1"))
    if settings.models:
        console.print()
        model = _example_model(settings, health)
        console.print(Text(curl_line(url, model, key, open_mode=settings.auth.mode == "open")))
    if key is None and settings.auth.mode == "keys":
        console.print()
        console.print(Text("KEY is one made by: gateway keys create"))
    console.print()
    console.print(Text("Ctrl-C stops it.", style="dim"))


def curl_line(url: str, model: str, key: str | None, *, open_mode: bool = False) -> str:
    """A streamed chat, ready to paste into a shell; cold and short, as a small model rambles otherwise.

    *key* is as `key_to_paste` has it.
    """
    authorization = "" if open_mode else f' -H "Authorization: Bearer {key or "KEY"}"'
    messages = '[{"role": "user", "content": "Say hello!"}]'
    body = f'{{"model": "{model}", "stream": true, "temperature": 0, "max_tokens": 100, "messages": {messages}}}'
    return f"curl -N {url}/v1/chat/completions{authorization} -H 'Content-Type: application/json' -d '{body}'"


def _example_model(settings: Settings, health: Health) -> str:
    """The local model's short name where it has one, else the first model; one that answers, if any does."""
    down = {name.removeprefix("engine ").removeprefix("bridge ") for name in health.problems}
    good = [name for name, model in settings.models.items() if any(t.provider not in down for t in model.targets)]
    good = good or list(settings.models)
    aliases = [alias for alias, model in settings.aliases.items() if "*" not in alias and model in good]
    return (aliases + good)[0]
