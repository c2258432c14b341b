"""`gateway explain`: a dry run of one request, which sends nothing."""

from __future__ import annotations

import os
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.text import Text

from adapters.draft import Unsupported
from adapters.types import Body
from gateway.catalog import Catalog
from gateway.cli.console import ExitCode, fail, note, out, print_json
from gateway.cli.files import read_text, read_yaml
from gateway.cli.options import ConfigFile
from gateway.data_plane.extra_body import EXTRA_BODY, unpack_extra_body
from gateway.data_plane.strict_json import decode_members
from gateway.errors import GatewayError
from gateway.estimate import Fit
from gateway.explain import Explained, Explanation, Verdict
from gateway.explain import explain as dry_run
from gateway.local_counts import LocalCounts
from gateway.settings import load_settings

_STDIN: Final = "-"
_NANO: Final = 10**9
_PROMPT: Final = [{"role": "user", "content": "Hello."}]
_STYLES: Final = {Verdict.ELIGIBLE: "green", Verdict.LOSSY: "yellow", Verdict.REFUSED: "bold red"}
_FITS: Final = {
    Fit.FITS: "fits",
    Fit.DOUBTFUL: "may be too long for",
    Fit.TOO_LONG: "is too long for",
}


def explain(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="What a client would put in model.")],
    params: Annotated[
        str, typer.Option(metavar="FILE", help="A request's body, or parts of it, in JSON or YAML; - reads JSON here.")
    ] = "",
    config: ConfigFile = None,
    unsupported: Annotated[
        Unsupported | None, typer.Option(help="What is done about parameters a target lacks.")
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", help="Count the prompt by the tokenizers of local models; starts them for that.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with the bodies that would be sent.")] = False,
) -> None:
    """Say which targets a request would go to, in which order and why, changed how and at what cost.

    Nothing is sent to a provider. Without a prompt of its own the request says hello.
    """
    settings = load_settings(config, environ=os.environ)
    catalog = Catalog.build(settings)
    found = catalog.resolve(model)
    if found is None:
        near = catalog.nearest(model)
        hint = f" Did you mean: {', '.join(near)}?" if near else " `gateway models` shows those there are."
        fail(f"there is no model '{model}'.{hint}", ExitCode.USAGE)
    try:
        body = _body(params)
        body["model"] = msgspec.Raw(msgspec.json.encode(found.id))
        counts = LocalCounts(settings, note) if count else None
        explanation = dry_run(settings, catalog, found, body, today=date.today(), unsupported=unsupported, count=counts)
    except GatewayError as error:
        what = f"with {params}, " if params not in ("", _STDIN) else ""
        fail(f"{what}a client would be told: {error.status} {error.code or error.type}: {error}")
    if as_json:
        print_json(_report(explanation))
    else:
        _print(explanation)
    if explanation.refusal is not None:
        raise typer.Exit(ExitCode.FAILED)


def _body(params: str) -> Body:
    body = _read(params) if params else {}
    if EXTRA_BODY in body:
        unpack_extra_body(body)
    if not any(name in body for name in ("messages", "prompt", "input")):
        body["messages"] = msgspec.Raw(msgspec.json.encode(_PROMPT))
    return body


def _read(params: str) -> Body:
    if params == _STDIN:
        return decode_members(sys.stdin.buffer.read())
    path = Path(params)
    if path.suffix not in (".yaml", ".yml"):
        return decode_members(read_text(path).encode())
    value = read_yaml(path)
    if not isinstance(value, dict):
        fail(f"{path}: the members of a request are expected, as a mapping (key: value).", ExitCode.USAGE)
    return decode_members(msgspec.json.encode(value))


def _report(explanation: Explanation) -> dict[str, Any]:
    refusal = explanation.refusal
    return {
        "model": explanation.model.id,
        "strategy": explanation.strategy,
        "operation": explanation.operation.value,
        "unsupported": explanation.unsupported.value,
        "targets": [_target(one) for one in explanation.targets],
        "refusal": None if refusal is None else str(refusal),
    }


def _target(one: Explained) -> dict[str, Any]:
    estimate, target = one.estimate, one.target
    return {
        "target": target.name,
        "place": one.place,
        "verdict": one.verdict.value,
        "reason": one.reason,
        "adjusted": [str(change) for change in one.adjustments],
        "shape": one.shape,
        "context_window": target.context_window,
        "context": estimate.fit.value if estimate is not None else None,
        "prompt_tokens": estimate.usage.prompt_tokens if estimate is not None else None,
        "prompt_counted": estimate.counted if estimate is not None else None,
        "most_output_tokens": estimate.usage.completion_tokens if estimate is not None else None,
        "most_cost_usd": _usd(estimate.cost_nusd) if estimate is not None else None,
        "price_from": target.price_from or None,
        "remarks": list(one.remarks),
        "signals": dict(one.signals),
        "body": msgspec.json.decode(one.body) if one.body else None,
    }


def _print(explanation: Explanation) -> None:
    console = out()
    head = f"{explanation.operation.value.replace('_', ' ')}, strategy {explanation.strategy}"
    console.print(Text.assemble((explanation.model.id, "bold"), f"  {head}, unsupported: {explanation.unsupported}"))
    for one in explanation.targets:
        console.print()
        place = f"{one.place}." if one.place is not None else "-"
        console.print(
            Text.assemble(f"{place:3}", (one.target.name, "bold"), "  ", (one.verdict.value, _STYLES[one.verdict]))
        )
        for title, text in _lines(one):
            console.print(Text(f"   {title:9}{text}"))
    if explanation.refusal is not None:
        console.print()
        note(f"no target is left; a client would be told: {explanation.refusal}")


def _lines(one: Explained) -> list[tuple[str, str]]:
    lines = [("why", one.reason)]
    if one.adjustments:
        lines.append(("changes", ", ".join(map(str, one.adjustments))))
    if one.shape is not None:
        lines.append(
            ("calls", f"'{one.shape}' is honoured by calls of the gateway's own; the cost is that of the first")
        )
    if one.estimate is not None:
        usage = one.estimate.usage
        about = "" if one.estimate.counted else "about "
        tokens = f"{about}{usage.prompt_tokens} tokens in, at most {usage.completion_tokens} out"
        price = f"at most {_usd(one.estimate.cost_nusd)} USD" if one.estimate.cost_nusd is not None else "price unknown"
        said = f"; {one.target.price_from}" if one.target.price_from else ""
        lines.append(("cost", f"{price} ({tokens}{said})"))
        if one.estimate.fit is not Fit.UNKNOWN:
            lines.append(("context", f"{_FITS[one.estimate.fit]} {one.target.context_window} tokens"))
        else:
            lines.append(("context", "of unknown size"))
    return [*lines, *(("note", remark) for remark in one.remarks)]


def _usd(nusd: int | None) -> str | None:
    return None if nusd is None else f"{(Decimal(nusd) / _NANO).normalize():f}"
