"""`gateway init`: writes a commented configuration to start from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from adapters.registry import load_spec
from gateway.cli import console
from gateway.cli.files import write_new
from gateway.config.zero import LOCAL_ALIAS, LOCAL_MODEL, hosted_types
from gateway.package_data import data_path


def init(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to; - for the terminal.")
    ] = "config.yaml",
    from_env: Annotated[
        bool, typer.Option("--from-env", help="Only the providers whose keys are in the environment.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that exists.")] = False,
) -> None:
    """Write a commented configuration: every key there is, or with --from-env a short one for the keys you have."""
    text = from_environment(os.environ) if from_env else data_path("config.example.yaml").read_text(encoding="utf-8")
    if output == "-":
        typer.echo(text, nl=False)
        return
    path = Path(output)
    write_new(path, text, force=force)
    console.out().print(f"{path} written. Start with: gateway serve -c {path}", markup=False)


def from_environment(environ: Mapping[str, str]) -> str:
    """A short configuration that serves what the keys in *environ* give, and the local engine; holds no key itself."""
    providers = ["  local: {type: local}  # the bundled engine"]
    targets: dict[str, list[str]] = {LOCAL_MODEL: ["{provider: local}"]}
    for name in hosted_types():
        spec = load_spec(name)
        variable = spec.transport.auth.env
        if not variable:
            continue
        if not environ.get(variable):
            providers.append(f'  # {name}: {{type: {name}, api_key: "${{{variable}}}"}}')
            continue
        providers.append(f'  {name}: {{type: {name}, api_key: "${{{variable}}}"}}')
        for model in spec.models:
            if model.offered:
                targets.setdefault(model.canonical, []).append(f"{{provider: {name}, model: {model.id}}}")
    lines = [
        "# What the provider keys in the environment give; `gateway init` without --from-env shows every key there is.",
        "version: 1",
        "server: {host: 127.0.0.1, port: 8080}",
        "auth:",
        "  mode: keys  # make one with: gateway keys create",
        "  admin_key: ${GATEWAY_ADMIN_KEY:-}  # at least 16 characters; empty: /admin is closed",
        "",
        "providers:",
        *providers,
        "",
        'models:  # what clients put in "model"; targets are tried in this order',
    ]
    for model_name, entries in targets.items():
        lines += [f"  {model_name}:", "    targets:", *(f"      - {entry}" for entry in entries)]
    lines += ["", f"aliases: {{{LOCAL_ALIAS}: {LOCAL_MODEL}}}", "expose_provider_models: true  # also provider/model"]
    return "\n".join(lines) + "\n"
