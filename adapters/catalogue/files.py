"""Finds price lists: in a file, in a wheel, or beside an installed distribution's code, which is never imported."""

from __future__ import annotations

import hashlib
import re
import zipfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from adapters.catalogue.litellm_prices import PriceListError
from adapters.catalogue.snapshot import Source
from adapters.vocabulary import PriceList

MOST_BYTES: Final = 64 * 1024 * 1024

_MEMBERS: Final = {
    PriceList.LITELLM: ("litellm", "litellm/model_prices_and_context_window_backup.json"),
    PriceList.GENAI_PRICES: ("genai-prices", "genai_prices/data.py"),
}
"""Each list's distribution, and where in it the list lies."""

COMPROMISED: Final = {PriceList.LITELLM: frozenset({"1.82.7", "1.82.8", "1.107.0"})}
"""Releases that somebody else than their authors made; nothing of them is believed."""

_WHEEL: Final = re.compile(r"[^-]+-(?P<version>[^-]+)-.*\.whl")


@dataclass(frozen=True, slots=True)
class PriceFile:
    """The bytes of a price list, and where they come from."""

    source: Source
    data: bytes


def read_price_file(price_list: PriceList, path: Path) -> PriceFile:
    """The list in *path*, itself or as a wheel that holds it; `PriceListError` when there is none."""
    try:
        if path.suffix != ".whl":
            return _checked(price_list, "", path.name, path.read_bytes())
        match = _WHEEL.fullmatch(path.name)
        member = _MEMBERS[price_list][1]
        with zipfile.ZipFile(path) as wheel:
            if wheel.getinfo(member).file_size > MOST_BYTES:
                raise PriceListError(f"{path} holds a list of more than {MOST_BYTES} bytes")
            return _checked(price_list, match["version"] if match else "", member, wheel.read(member))
    except KeyError:
        raise PriceListError(f"{path} does not hold {member}") from None
    except OSError as error:
        raise PriceListError(f"{path} cannot be read: {error.strerror or error}") from None
    except zipfile.BadZipFile as error:
        raise PriceListError(f"{path} is no wheel: {error}") from None


def installed_price_file(price_list: PriceList) -> PriceFile | None:
    """The list that an installed distribution brought along; None where it is not installed."""
    name, member = _MEMBERS[price_list]
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return None
    path = Path(str(found.locate_file(member)))
    try:
        return _checked(price_list, found.version, member, path.read_bytes())
    except OSError as error:
        raise PriceListError(f"{path} cannot be read: {error}") from None


def fetched_price_file(price_list: PriceList, url: str, data: bytes) -> PriceFile:
    """The list that was fetched from *url*."""
    return _checked(price_list, "", url, data)


def _checked(price_list: PriceList, version: str, file: str, data: bytes) -> PriceFile:
    if version in COMPROMISED.get(price_list, ()):
        raise PriceListError(f"{_MEMBERS[price_list][0]} {version} was a compromised release; take another one")
    return PriceFile(Source(price_list.value, version, file, hashlib.sha256(data).hexdigest()), data)
