"""A new snapshot is compared with the last one and with the second list before it is believed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

import pytest

from adapters.catalogue.snapshot import Snapshot, Source, read_snapshot, shipped_snapshot, write_snapshot
from adapters.catalogue.sync import Outcome, make_snapshot, names_in
from adapters.registry import load_spec
from adapters.vocabulary import PriceList
from tests.unit.adapters.catalogue.price_lists import TODAY, genai_list, litellm_list, priced, read_first, read_second

SOURCE = Source("litellm", "1.0", "prices.json", "0" * 64)


def synced(
    entries: dict[str, dict[str, object]],
    *,
    second: bytes | None = None,
    before: Snapshot | None = None,
    accept: Collection[str] = (),
) -> Outcome:
    others = read_second(second)[0] if second is not None else {}
    records = read_first(litellm_list(**entries))[0]
    return make_snapshot(records, others, sources=(SOURCE,), today=TODAY, before=before, accept=accept)


def jumps(entries: dict[str, dict[str, object]], before: Snapshot, accept: Collection[str] = ()) -> list[str]:
    return [jump.model for jump in synced(entries, before=before, accept=accept).jumps]


BEFORE = synced({"groq__m": priced(1e-07, 4e-07), "groq__k": priced(1e-07, 4e-07)}).snapshot
KEPT = {"groq__k": priced(1e-07, 4e-07)}


@pytest.mark.parametrize(
    ("entry", "looked_at"),
    [
        (priced(5e-07, 4e-07), False),
        (priced(5.1e-07, 4e-07), True),
        (priced(2e-08, 4e-07), False),
        (priced(1.9e-08, 4e-07), True),
        (priced(1e-07, 0.0), True),
        (priced(1e-07, 4e-07, cache_read_input_token_cost=1e-09), False),
    ],
)
def test_a_price_that_jumps_or_becomes_nothing_waits_for_a_person(entry: dict[str, object], looked_at: bool) -> None:
    assert jumps({**KEPT, "groq__m": entry}, BEFORE) == (["groq/m"] if looked_at else [])


def test_a_model_that_went_away_waits_for_a_person() -> None:
    assert jumps(KEPT, BEFORE) == ["groq/m"]


def test_what_is_accepted_by_name_or_all_at_once_does_not_wait() -> None:
    gone: dict[str, dict[str, object]] = {"groq__k": priced(9e-06, 4e-07)}

    assert jumps(gone, BEFORE, ["groq/m"]) == ["groq/k"]
    assert jumps(gone, BEFORE, ["all"]) == []


def test_every_change_is_told_in_the_words_people_use_for_prices() -> None:
    outcome = synced({**KEPT, "groq__m": priced(2e-07, 4e-07), "groq__n": priced(1e-07, 1e-07)}, before=BEFORE)

    assert [(one.model, one.text) for one in outcome.changes] == [
        ("groq/m", "input: 0.1 -> 0.2 USD"),
        ("groq/n", "is new"),
    ]


GENAI = "ModelInfo(id='m', prices=ModelPrice(input_mtok=Decimal('{}'), output_mtok=Decimal('0.4')))"


def test_a_price_that_both_lists_have_carries_both_as_sources() -> None:
    outcome = synced({"groq__m": priced(1e-07, 4e-07)}, second=genai_list(GENAI.format("0.1")))

    assert outcome.confirmed == 1
    assert outcome.snapshot.models["groq"]["m"].sources == ("litellm", "genai_prices")


def test_where_the_lists_differ_the_first_is_taken_and_the_difference_told() -> None:
    outcome = synced({"groq__m": priced(1e-07, 4e-07)}, second=genai_list(GENAI.format("0.12")))

    assert [one.text for one in outcome.disagreements] == ["input: 0.1 USD, 0.12 in the second list"]
    assert outcome.snapshot.models["groq"]["m"].input_ptoken == 100_000
    assert outcome.jumps == ()


def test_a_new_price_far_from_the_second_lists_waits_but_a_known_one_does_not_again() -> None:
    second = genai_list(GENAI.format("0.7"))
    first = synced({"groq__m": priced(1e-07, 4e-07)}, second=second)
    again = synced({"groq__m": priced(1e-07, 4e-07)}, second=second, before=first.snapshot)

    assert [one.model for one in first.jumps] == ["groq/m"]
    assert again.jumps == ()


def test_a_written_snapshot_reads_back_as_it_was_and_is_written_the_same() -> None:
    written = write_snapshot(BEFORE)

    assert read_snapshot(written) == BEFORE
    assert write_snapshot(read_snapshot(written)) == written


def test_the_shipped_snapshot_is_dated_small_and_of_known_providers() -> None:
    snapshot = shipped_snapshot()

    assert snapshot.as_of >= date(2026, 11, 30)
    assert set(snapshot.models) <= {load_spec(name).id for name in names_in(PriceList.LITELLM).values()}
    assert [len(source.sha256) for source in snapshot.sources] == [64, 64]
    assert len(write_snapshot(snapshot)) < 300_000


def test_our_own_files_agree_with_the_snapshot_or_the_difference_is_known() -> None:
    snapshot = shipped_snapshot()
    outcome = make_snapshot(snapshot.models, {}, sources=snapshot.sources, today=TODAY, before=snapshot)

    assert {one.model for one in outcome.overridden} == set()
    assert outcome.changes == ()
