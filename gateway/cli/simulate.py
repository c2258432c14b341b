"""`gateway simulate`: a loopback server that takes, refuses and answers what a provider's file says it does."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from gateway import interruption
from gateway.cli.console import ExitCode, fail, out
from gateway.cli.files import read_yaml
from gateway.listening import ListenError, bind, url_of

if TYPE_CHECKING:
    from adapters.simulator.engine import Simulator
    from adapters.spec import ProviderSpec

DEFAULT_PORT = 9300


def simulate(
    provider: Annotated[str, typer.Argument(help="A type of provider, such as groq or vllm.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    key: Annotated[str | None, typer.Option(help="The only key to accept (default: one is made up).")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A further model to serve; may be repeated.")] = None,
    context: Annotated[int | None, typer.Option(min=16, help="The models' context, in tokens.")] = None,
    first_token: Annotated[float, typer.Option(min=0, help="Seconds before the first token.")] = 0.0,
    tokens_per_second: Annotated[float | None, typer.Option(min=0.01, help="Speed after that.")] = None,
    jitter: Annotated[float, typer.Option(min=0, max=1, help="How much times vary, from 0 to 1.")] = 0.0,
    fault: Annotated[str | None, typer.Option(help="What goes wrong, such as status=503 or rate_limit=7.")] = None,
    fault_first: Annotated[int | None, typer.Option(min=1, help="Only the first so many requests fail.")] = None,
    override: Annotated[Path | None, typer.Option(help="A YAML file with facts to change.", dir_okay=False)] = None,
) -> None:
    """Play a provider on this machine, without its key or a network: refusals, error bodies and stream habits included.

    A request can ask for a fault by itself, with the header `x-simulate: NAME` or the model `simulate-NAME`.
    """
    from adapters.simulator.engine import Simulator
    from adapters.simulator.faults import Fault, FaultError
    from adapters.simulator.options import Options

    spec = _spec_of(provider, override)
    try:
        wrong = Fault.parse(fault) if fault is not None else None
    except FaultError as error:
        fail(str(error), ExitCode.USAGE)
    options = Options(
        key=key,
        models=tuple(model or ()),
        context_window=context,
        first_token_seconds=first_token,
        tokens_per_second=tokens_per_second,
        jitter=jitter,
        fault=wrong,
        fault_first=fault_first,
    )
    try:
        sock = bind(host, port)
    except ListenError as error:
        fail(str(error))
    with sock:
        simulator = Simulator(spec, options)
        sock.listen()  # who reads the lines may connect at once
        for line in describe(simulator, url_of(sock)):
            out().print(Text(line))
        asyncio.run(_serve(simulator, sock))


def describe(simulator: Simulator, url: str) -> list[str]:
    """What to know to use it: the address, the key, and the piece of configuration that leads there."""
    spec, key = simulator.spec, simulator.key
    base_url = f"{url}{simulator.base_path}"
    # What runs inside the gateway has no address to set; what it was made from has.
    kind = spec.id if spec.kind != "in_process" else spec.inherits or "openai_compatible"
    settings = f'type: {kind}, base_url: "{base_url}"' + (f", api_key: {key}" if key is not None else "")
    model = simulator.models.names()[0]
    return [
        f"{spec.name}, simulated from its file of {spec.as_of}.",
        f"Base URL: {base_url}",
        f"Key:      {key if key is not None else 'none needed'}",
        "",
        "providers:",
        f"  {spec.id}: {{{settings}}}",
        "models:",
        f'  rehearsal: {{targets: [{{provider: {spec.id}, model: "{model}"}}]}}',
        "",
        "Ctrl-C stops it.",
    ]


def _spec_of(provider: str, override: Path | None) -> ProviderSpec:
    from pydantic import ValidationError

    from adapters.registry import UnknownProviderTypeError, load_spec
    from adapters.spec import ProviderSpec
    from adapters.validation import problems_of

    try:
        spec = load_spec(provider)
    except UnknownProviderTypeError as error:
        fail(str(error), ExitCode.USAGE)
    if not any(endpoint.available for name, endpoint in spec.endpoints.items() if name in _SIMULATED):
        fail(f"{spec.name} has no chat, completions or embeddings, and only these are simulated.")
    if override is None:
        return spec
    changes = _read(override)
    try:
        return spec.with_overrides(changes)
    except ValidationError as error:
        found = [f"{'.'.join(map(str, at))}: {text}" for at, _, text in problems_of(error, ProviderSpec)]
        fail("\n".join([f"{override} does not fit a provider file:", *found]), ExitCode.CONFIG)


_SIMULATED = ("chat_completions", "completions", "embeddings")


def _read(path: Path) -> dict[str, Any]:
    changes = read_yaml(path)
    if not isinstance(changes, dict):
        fail(f"{path}: a mapping (key: value) is expected, as in `overrides`.", ExitCode.CONFIG)
    return changes


async def _serve(simulator: Simulator, sock: socket.socket) -> None:
    import uvicorn

    from adapters.simulator.asgi import SimulatorApp

    # It says of each answer that was cut on purpose that the application must be broken.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    options: dict[str, Any] = {"ws": "none", "lifespan": "off", "log_config": None, "access_log": False}
    config = uvicorn.Config(SimulatorApp(simulator), **options, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    # Its own way would raise the signal once more after the end, as if something had been interrupted.
    with interruption.handled_by(server.handle_exit):
        await server._serve([sock])
