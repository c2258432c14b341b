"""A snapshot of price lists that is the tests' own: the shipped one changes with every `gateway catalog sync`."""

from __future__ import annotations

from datetime import date

from adapters.catalogue.record import ModelRecord
from adapters.catalogue.snapshot import Snapshot, Source
from adapters.spec import ModelStatus

LISTED = ModelRecord(
    "acme/listed-70b",
    canonical="listed-70b",
    context_window=131_072,
    max_output_tokens=131_072,
    input_ptoken=1_200_000,
    output_ptoken=3_600_000,
    sources=("litellm",),
)
"""At Together, whose own file does not know it."""

GONE = ModelRecord(
    "gone-7b",
    canonical="gone-7b",
    input_ptoken=1,
    output_ptoken=1,
    status=ModelStatus.DEPRECATED,
    retired_on=date(2026, 10, 23),
    successor="next-8b",
    sources=("litellm",),
)
"""At OpenAI, as other people's lists have it."""

SNAPSHOT = Snapshot(
    schema=1,
    as_of=date(2026, 11, 1),
    sources=(Source("litellm", "1.0.0", "prices.json", "0" * 64),),
    models={"together": {LISTED.id: LISTED}, "openai": {GONE.id: GONE}},
)
