"""Small price lists in the manner of the two that are read, with the oddities that were seen there."""

from __future__ import annotations

import json
from datetime import date

from adapters.catalogue.genai_prices import read_genai_prices
from adapters.catalogue.litellm_prices import read_litellm
from adapters.catalogue.record import ModelRecord
from adapters.catalogue.sync import canonical_name, names_in
from adapters.vocabulary import PriceList

TODAY = date(2026, 11, 30)
Records = dict[str, dict[str, ModelRecord]]


def litellm_list(**entries: dict[str, object]) -> bytes:
    """A list of *entries*, named with ``__`` for a slash."""
    return json.dumps({name.replace("__", "/"): entry for name, entry in entries.items()}).encode()


def priced(input_usd: float | str, output_usd: float | str, **more: object) -> dict[str, object]:
    """An entry of a chat model of Groq's, in USD a token."""
    entry = {"litellm_provider": "groq", "mode": "chat", "input_cost_per_token": input_usd}
    return {**entry, "output_cost_per_token": output_usd, **more}


def read_first(data: bytes) -> tuple[Records, list[str]]:
    return read_litellm(data, names_in(PriceList.LITELLM), canonical_name)


def genai_list(models: str, provider: str = "groq") -> bytes:
    """A list of one provider with *models*, in the words of Python."""
    head = "import datetime\nfrom decimal import Decimal\nfrom .types import *\n\nproviders: list[Provider] = [\n"
    return f"{head}    Provider(id={provider!r}, name='X', models=[{models}]),\n]\n".encode()


def read_second(data: bytes, today: date = TODAY) -> tuple[Records, list[str]]:
    return read_genai_prices(data, names_in(PriceList.GENAI_PRICES), today)
