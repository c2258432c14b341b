"""Records: exact prices, the stages of a model's life, and one source's facts laid over another's."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from adapters.catalogue.merged import all_records, find_record, successor_of
from adapters.catalogue.record import MILLION, Life, ModelKind, ModelRecord, from_file, laid_over, pico, usd
from adapters.registry import load_spec
from adapters.spec import ModelSpec, ModelStatus
from adapters.types import LongPrice, Price
from tests.fakes.price_snapshot import GONE

DAY = date(2026, 12, 11)


@pytest.mark.parametrize(
    ("figure", "units", "stored"),
    [("0.15", MILLION, 150_000), ("0.111", 1, 111_000_000_000), ("22", MILLION, 22_000_000), ("0", MILLION, 0)],
)
def test_a_price_is_stored_whole_and_told_as_it_came(figure: str, units: int, stored: int) -> None:
    assert pico(Decimal(figure), units=units) == stored
    assert f"{usd(stored, units=units):f}" == figure


@pytest.mark.parametrize(
    ("status", "today", "life"),
    [
        (ModelStatus.PRODUCTION, date(2026, 11, 10), Life.SERVED),
        (ModelStatus.PRODUCTION, date(2026, 11, 11), Life.ENDING),
        (ModelStatus.DEPRECATED, date(2026, 11, 10), Life.DEPRECATED),
        (ModelStatus.DEPRECATED, date(2026, 12, 10), Life.ENDING),
        (ModelStatus.PREVIEW, date(2026, 11, 10), Life.PREVIEW),
        (ModelStatus.PRODUCTION, DAY, Life.RETIRED),
        (ModelStatus.RETIRED, date(2020, 1, 1), Life.RETIRED),
        (ModelStatus.VERIFY, date(2030, 1, 1), Life.DOUBTED),
    ],
)
def test_a_model_goes_through_its_life_by_status_and_date(status: ModelStatus, today: date, life: Life) -> None:
    assert ModelRecord("m", status=status, retired_on=DAY).life(today) is life


def test_a_files_entry_becomes_a_record_with_every_kind_of_price() -> None:
    def listed(**figures: object) -> ModelRecord:
        return from_file(ModelSpec.model_validate({"id": "m", "canonical": "m", **figures}), "f")

    assert listed(**{"in": "0.15", "out": "0.6", "cached_in": "0.075"}).price == Price(150_000, 600_000, 75_000)
    assert listed(per_audio_hour="0.111").kind is ModelKind.TRANSCRIPTION
    assert listed(per_1m_chars="22").prices == {"pcharacter": 22_000_000}
    assert listed(**{"in": "0.02", "out": "0"}).kind is ModelKind.EMBEDDING
    assert listed(**{"in": "0", "out": "0"}).kind is ModelKind.TEXT
    assert listed(**{"in": "2", "out": "10", "tiers": True}).long_prompts_cost_more
    dearer = listed(
        **{"in": "2", "out": "10", "tiers": [{"above": 272_000, "in": "4", "out": "15", "cached_in": "0.4"}]}
    )
    assert dearer.price == Price(2_000_000, 10_000_000, long=(LongPrice(272_000, 4_000_000, 15_000_000, 400_000),))
    assert not dearer.long_prompts_cost_more


FULL = ModelRecord(
    "m", context_window=1000, max_output_tokens=500, input_ptoken=1, output_ptoken=2, cached_input_ptoken=3,
    status=ModelStatus.DEPRECATED, retired_on=DAY, successor="n", sources=("theirs",),
)  # fmt: skip


def test_our_own_price_is_never_mixed_with_anothers() -> None:
    own = ModelRecord("m", input_ptoken=7, output_ptoken=8, sources=("ours",))

    merged = laid_over(own, FULL)

    assert merged.price == Price(7, 8, None)
    assert merged.sources == ("ours", "theirs")


def test_a_missing_price_comes_from_the_other_and_says_so_first() -> None:
    merged = laid_over(ModelRecord("m", sources=("ours",)), FULL)

    assert merged.price == Price(1, 2, 3)
    assert merged.sources == ("theirs", "ours")


def test_what_we_say_is_served_is_not_retired_by_anothers_date() -> None:
    merged = laid_over(ModelRecord("m", sources=("ours",)), FULL)

    assert merged.life(date(2030, 1, 1)) is Life.SERVED
    assert merged.successor == "n"


def test_an_answer_is_never_said_to_be_longer_than_the_window() -> None:
    assert laid_over(ModelRecord("m", context_window=100), FULL).max_output_tokens == 100


@pytest.mark.usefixtures("price_snapshot")
def test_a_models_successor_is_the_one_named_else_the_nearest_that_is_served() -> None:
    groq, openai = load_spec("groq"), load_spec("openai")
    old, named = find_record(groq, "llama-3.3-70b-versatile"), find_record(openai, GONE.id)

    assert old is not None
    assert named is not None
    assert successor_of(groq, old) in {model.id for model in groq.models if model.offered}
    assert successor_of(openai, named) == GONE.successor


def test_each_model_stands_in_the_catalogue_once() -> None:
    for name in ("groq", "together", "fireworks", "openai", "vllm"):
        ids = [record.id for record in all_records(load_spec(name))]

        assert len(ids) == len(set(ids))
        assert (ids != []) == (name != "vllm")
