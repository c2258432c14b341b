"""`gateway catalog`: makes the dated snapshot of prices from other people's lists."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated, Any

import httpx2
import msgspec
import typer
from rich.text import Text

from adapters.catalogue.files import (
    MOST_BYTES,
    PriceFile,
    fetched_price_file,
    installed_price_file,
    read_price_file,
)
from adapters.catalogue.genai_prices import read_genai_prices
from adapters.catalogue.litellm_prices import PriceListError, read_litellm
from adapters.catalogue.snapshot import SNAPSHOT, Snapshot, read_snapshot, write_snapshot
from adapters.catalogue.sync import Difference, Outcome, Records, canonical_name, make_snapshot, names_in
from adapters.vocabulary import PriceList
from gateway.cli.console import ExitCode, fail, note, out, print_json

app = typer.Typer(no_args_is_help=True, help="Make the snapshot of prices that models without one are charged by.")

_FETCH_SECONDS = 60.0


@app.callback()
def catalog() -> None:
    """The snapshot of prices."""


@app.command("sync")
def sync(
    litellm: Annotated[
        str, typer.Option(metavar="FILE|URL", help="LiteLLM's price file, a wheel with it, or an https address.")
    ] = "",
    genai_prices: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The data.py of genai-prices, or its wheel, to check against.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write it.")] = SNAPSHOT,
    accept: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help="Accept the new price of type/id; 'all' for every one.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make the snapshot anew and say what is different.

    Without files it takes the lists of the installed litellm and genai-prices, which are read and never imported.
    A price that changes by more than a factor of 5, becomes 0, goes away or is that far from the second list's is
    not taken unless accepted.
    """
    try:
        first = _first_list(litellm)
        second = (
            read_price_file(PriceList.GENAI_PRICES, genai_prices)
            if genai_prices is not None
            else installed_price_file(PriceList.GENAI_PRICES)
        )
        before = _before(output)
        outcome, remarks = _make(first, second, before, accept or [])
    except PriceListError as error:
        fail(str(error))
    if as_json:
        print_json(_report(outcome, remarks))
    else:
        _print(outcome, remarks, checked=second is not None)
    if outcome.jumps:
        fail(f"{len(outcome.jumps)} prices need a look; accept each by --accept MODEL. Nothing was written.")
    if not dry_run:
        try:
            output.write_bytes(write_snapshot(outcome.snapshot))
        except OSError as error:
            fail(f"{output} cannot be written: {error.strerror or error}. Name another file with --output.")
        note(f"wrote {output}")


def _first_list(where: str) -> PriceFile:
    if where.startswith("https://"):
        return fetched_price_file(PriceList.LITELLM, where, _fetch(where))
    if "://" in where:
        raise PriceListError(f"{where} is not fetched: prices come over https or not at all")
    if where:
        return read_price_file(PriceList.LITELLM, Path(where))
    found = installed_price_file(PriceList.LITELLM)
    if found is None:
        raise PriceListError("litellm is not installed; name its price file, or a wheel of it, with --litellm")
    return found


def _fetch(url: str) -> bytes:
    try:
        with httpx2.stream("GET", url, timeout=_FETCH_SECONDS, follow_redirects=True) as response:
            response.raise_for_status()
            if response.url.scheme != "https":
                raise PriceListError(f"{url} leads to {response.url.host} without https")
            data = bytearray()
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > MOST_BYTES:
                    raise PriceListError(f"{url} sends more than {MOST_BYTES} bytes")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        fail(f"{url}: {error}", ExitCode.UNREACHABLE)
    return bytes(data)


def _before(output: Path) -> Snapshot | None:
    """The snapshot to compare with: the one to be replaced, else the one that came with the installation."""
    place = output if output.is_file() else SNAPSHOT
    try:
        return read_snapshot(place.read_bytes()) if place.is_file() else None
    except msgspec.DecodeError as error:
        raise PriceListError(f"{place} is no snapshot: {error}. Remove it to begin anew.") from None


def _make(
    first: PriceFile, second: PriceFile | None, before: Snapshot | None, accept: list[str]
) -> tuple[Outcome, list[str]]:
    today = date.today()
    try:
        records, remarks = read_litellm(first.data, names_in(PriceList.LITELLM), canonical_name)
    except PriceListError as error:
        raise PriceListError(f"{first.source.file}: {error}") from None
    if not records:
        raise PriceListError("the list knows none of our providers; it may be written in another way by now")
    others: Records = {}
    more: list[str] = []
    if second is not None:
        others, more = read_genai_prices(second.data, names_in(PriceList.GENAI_PRICES), today)
    sources = (first.source, second.source) if second is not None else (first.source,)
    outcome = make_snapshot(records, others, sources=sources, today=today, before=before, accept=accept)
    return outcome, [*remarks, *more]


def _report(outcome: Outcome, remarks: list[str]) -> dict[str, Any]:
    def listed(differences: tuple[Difference, ...]) -> list[dict[str, str]]:
        return [{"model": one.model, "text": one.text} for one in differences]

    return {
        "as_of": outcome.snapshot.as_of.isoformat(),
        "sources": [msgspec.to_builtins(source) for source in outcome.snapshot.sources],
        "models": {name: len(models) for name, models in sorted(outcome.snapshot.models.items())},
        "confirmed": outcome.confirmed,
        "not_accepted": listed(outcome.jumps),
        "changes": listed(outcome.changes),
        "disagreements": listed(outcome.disagreements),
        "overridden": listed(outcome.overridden),
        "left_out": remarks,
    }


def _print(outcome: Outcome, remarks: list[str], *, checked: bool) -> None:
    console = out()
    counts = ", ".join(f"{name} {len(models)}" for name, models in sorted(outcome.snapshot.models.items()))
    console.print(Text(f"models: {counts}"))
    for source in outcome.snapshot.sources:
        console.print(Text(f"from {source.name} {source.version or source.file}, sha256 {source.sha256}"))
    if checked:
        console.print(Text(f"{outcome.confirmed} prices are the same in the second list."))
    else:
        console.print(Text("not checked against genai-prices, which is not installed", style="yellow"))
    for title, differences, style in (
        ("To be accepted", outcome.jumps, "bold red"),
        ("Changes", outcome.changes, ""),
        ("The second list differs", outcome.disagreements, "yellow"),
        ("Our own files differ, and are used", outcome.overridden, ""),
    ):
        if differences:
            console.print()
            console.print(Text(title, style="bold"))
        for one in differences:
            console.print(Text.assemble("  ", (one.model, style), f"  {one.text}"))
    if remarks:
        console.print()
        console.print(Text("Left out", style="bold"))
    for remark in remarks:
        console.print(Text(f"  {remark}"))
