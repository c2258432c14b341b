"""`gateway probe`: does a provider still do what its file says? Asks it, and shows where the two differ."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from adapters.target import Target
from gateway import interruption
from gateway.catalog import Catalog, Model
from gateway.cli.console import ExitCode, fail, note, out, print_json
from gateway.cli.files import write_new
from gateway.cli.options import ConfigFile
from gateway.settings import Settings, load_settings

if TYPE_CHECKING:
    from gateway.probe.battery import Bill
    from gateway.probe.finding import Finding

_NANO: Final = 1_000_000_000
_SHOWN: Final = 60


def probe(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="provider/model as in `gateway check`, or a model with one target.")
    ],
    config: ConfigFile = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Ask only for this fact and those below it: params.n, messages. May be repeated."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Make an overrides block of the differences.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where --write puts it; else it is printed.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before sending.")] = False,
) -> None:
    """Ask a target for what its provider's file says of it, and show what holds, what differs and what stays open.

    Sends some hundred small requests, one after another, with the provider's own key; says before what that costs.
    Exit code 0: everything holds or could not be settled; 1: something differs; 4: the target does not answer.
    """
    from gateway.probe.battery import rehearse
    from gateway.probe.session import UnreachableError

    settings = load_settings(config, environ=os.environ)
    catalog = Catalog.build(settings)
    model, found = _find(catalog, target)
    provider = settings.providers[found.provider]
    if provider.local or provider.bridge:
        fail(
            f"{found.name} runs inside `gateway serve`; only what has an address of its own is probed.", ExitCode.USAGE
        )
    if output is not None and not write:
        fail("--output needs --write.", ExitCode.USAGE)
    wanted = tuple(only or ())
    try:
        bill = interruption.run(rehearse(found, wanted))
        strange = [name for name in wanted if not any(_is_wanted(fact, (name,)) for fact in bill.facts)]
        if strange:
            fail(f"no fact that can be asked for is called {' or '.join(strange)}.", ExitCode.USAGE)
        note(_announcement(found, bill))
        if not yes and not _confirmed():
            fail("nothing was sent; --yes sends without asking.", ExitCode.USAGE)
        findings = interruption.run(_probe(settings, catalog, model, found, wanted))
    except UnreachableError as error:
        fail(f"{found.name} cannot be probed: {error}", ExitCode.UNREACHABLE)
    findings = [one for one in findings if _is_wanted(one.fact, wanted)]
    overrides = _overrides(found, findings)
    if as_json:
        print_json(_report(found, bill, findings, overrides))
    else:
        _print(findings)
    if write:
        _write(found, overrides, output, quiet=as_json)
    if any(one.verdict == "differs" for one in findings):
        raise typer.Exit(ExitCode.FAILED)


def _find(catalog: Catalog, name: str) -> tuple[Model, Target]:
    """The target called *name*, or the only one of the model or provider called so."""
    models = (*catalog.models.values(), *catalog.exposed.values())
    pairs = [(model, target) for model in models for target in model.targets]
    meant = catalog.resolve(name)
    ways: tuple[Callable[[Target], bool], ...] = (
        lambda target: target.name == name,
        lambda target: meant is not None and target in meant.targets,
        lambda target: target.provider == name,
    )
    found: dict[str, tuple[Model, Target]] = {}
    for fits in ways:
        found = found or {target.name: (model, target) for model, target in pairs if fits(target)}
    if not found:
        names = sorted({target.name for _, target in pairs})
        fail(f"there is no target '{name}'. There are: {', '.join(names[:12]) or 'none'}", ExitCode.USAGE)
    if len(found) > 1:
        fail(f"'{name}' is several targets; name one: {', '.join(sorted(found))}", ExitCode.USAGE)
    return next(iter(found.values()))


async def _probe(
    settings: Settings, catalog: Catalog, model: Model, target: Target, wanted: Sequence[str]
) -> list[Finding]:
    from gateway.probe.battery import probe
    from gateway.probe.session import UnreachableError
    from gateway.probe.wire import NoChatError, wire_to

    try:
        async with wire_to(settings, catalog, model, target) as wire:
            findings = await probe(target, wire.send, wanted)
            if wire.waited:
                note(f"waited {sum(wire.waited):.0f} s in all, because the provider asked for it")
            return findings
    except NoChatError:
        raise UnreachableError("it has no chats, and nothing else is probed") from None


def _announcement(target: Target, bill: Bill) -> str:
    cost = bill.cost_nusd(target)
    price = f"about {max(cost, 0) / _NANO:.4f} USD" if cost is not None else "its price is not known"
    return (
        f"{target.name}: about {bill.requests} requests, {bill.prompt_tokens} prompt tokens and at most "
        f"{bill.completion_tokens} of answers; {price}."
    )


def _confirmed() -> bool:
    return sys.stdin.isatty() and typer.confirm("Send them?", default=False, err=True)


def _is_wanted(fact: str, wanted: Sequence[str]) -> bool:
    names = [name.rstrip("*.") for name in wanted]
    return not names or any(fact == name or fact.startswith((f"{name}.", f"{name}:")) for name in names)


def _overrides(target: Target, findings: Sequence[Finding]) -> dict[str, Any]:
    from gateway.probe.overrides import overrides_of

    return overrides_of(target.spec, findings)


def _print(findings: Sequence[Finding]) -> None:
    styles = {"holds": "green", "differs": "bold red", "not settled": "yellow"}
    rows = [
        (f"{'* ' if one.contested else ''}{one.fact}", one.says[:_SHOWN], one.seen[:_SHOWN], one.verdict.value, one.why)
        for one in findings
    ]
    head = ("fact", "the file says", "seen", "verdict", "")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
    for row in (head, *rows):
        cells = "  ".join(text.ljust(width) for text, width in zip(row[:3], widths, strict=True))
        why = f": {row[4]}" if row[4] else ""
        out().print(Text.assemble(cells, "  ", (row[3], styles.get(row[3], "bold")), why))
    counted = Counter(one.verdict.value for one in findings)
    out().print(Text("\n" + ", ".join(f"{counted[name]} {name}" for name in styles if counted[name])))
    if any(one.contested for one in findings):
        out().print(Text("* the file's sources disagree, or nobody has verified it"))


def _report(target: Target, bill: Bill, findings: Sequence[Finding], overrides: dict[str, Any]) -> dict[str, Any]:
    return {
        "target": target.name,
        "type": target.spec.id,
        "as_of": str(target.spec.as_of),
        "requests": bill.requests,
        "findings": [
            {
                "fact": one.fact,
                "says": one.says,
                "seen": one.seen,
                "verdict": one.verdict,
                "contested": one.contested,
                **({"why": one.why} if one.why else {}),
            }
            for one in findings
        ],
        "overrides": overrides,
    }


def _write(target: Target, overrides: dict[str, Any], output: Path | None, *, quiet: bool) -> None:
    from gateway.probe.overrides import as_yaml

    if not overrides:
        note("nothing differs, so there is nothing to write")
        return
    today = datetime.now(UTC).date().isoformat()
    text = as_yaml(overrides, f"What {target.name} did otherwise than its file of {target.spec.as_of}, on {today}.")
    if output is None:
        if not quiet:
            out().print(Text(f"\n{text}"), end="")
        return
    write_new(output, text, force=True)
    note(f"{output} goes below the provider, or the target, in the configuration")
