"""The second price list is Python in form; it is read without running a line of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from adapters.catalogue.litellm_prices import PriceListError
from adapters.types import LongPrice, Price
from tests.unit.adapters.catalogue.price_lists import genai_list, read_second

SIMPLE = "ModelInfo(id='m', match=ClauseEquals(equals='m'), prices=ModelPrice(input_mtok=Decimal('0.15'), output_mtok=Decimal('0.6'), cache_read_mtok=Decimal('0.075')))"  # noqa: E501
BEGINS = """ModelInfo(id='m', prices=[
    ConditionalPrice(prices=ModelPrice(input_mtok=Decimal('1'), output_mtok=Decimal('2'))),
    ConditionalPrice(constraint=StartDateConstraint(start_date=datetime.date(2026, 12, 1)),
                     prices=ModelPrice(input_mtok=Decimal('3'), output_mtok=Decimal('4'))),
])"""


def test_a_price_for_a_million_becomes_whole_pico_usd() -> None:
    assert read_second(genai_list(SIMPLE))[0]["groq"]["m"].price == Price(150_000, 600_000, 75_000)


@pytest.mark.parametrize(
    ("today", "price"),
    [(date(2026, 11, 30), Price(1_000_000, 2_000_000)), (date(2026, 12, 1), Price(3_000_000, 4_000_000))],
)
def test_the_price_is_that_of_the_day(today: date, price: Price) -> None:
    assert read_second(genai_list(BEGINS), today)[0]["groq"]["m"].price == price


def test_tiers_are_what_longer_prompts_cost() -> None:
    tiers = "TieredPrices(base=Decimal('2'), tiers=[Tier(start=272000, price=Decimal('4'))])"
    model = f"ModelInfo(id='m', prices=ModelPrice(input_mtok={tiers}, output_mtok=Decimal('10')))"

    record = read_second(genai_list(model))[0]["groq"]["m"]

    assert record.price == Price(2_000_000, 10_000_000, long=(LongPrice(272_000, 4_000_000, 10_000_000),))
    assert not record.long_prompts_cost_more


def test_a_model_goes_by_every_name_its_rule_spells_out() -> None:
    rule = "ClauseOr(or_=[ClauseEquals(equals='Org/M-1'), ClauseEquals(equals='m-latest'), ClauseStartsWith(starts_with='m')])"  # noqa: E501
    model = f"ModelInfo(id='m-1', match={rule}, prices=ModelPrice(input_mtok=Decimal('1'), output_mtok=Decimal('1')))"

    assert set(read_second(genai_list(model))[0]["groq"]) == {"m-1", "org/m-1", "m-latest"}


def test_a_price_by_the_hour_of_the_day_is_left_out() -> None:
    model = """ModelInfo(id='m', prices=[ConditionalPrice(
        constraint=TimeOfDateConstraint(start_time=datetime.time(16, 30), end_time=datetime.time(0, 30)),
        prices=ModelPrice(input_mtok=Decimal('1'), output_mtok=Decimal('1')))])"""
    _, remarks = read_second(genai_list(f"{SIMPLE}, {model}"))

    assert len(remarks) == 1


def test_nothing_in_the_file_is_run(tmp_path: Path) -> None:
    trap = f"ModelInfo(id=open({str(tmp_path / 'ran')!r}, 'w').name, prices=ModelPrice())"

    read_second(genai_list(f"{SIMPLE}, {trap}"))

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", [b"def (", b"", b"providers = []", b"\0"])
def test_a_file_without_models_is_an_error(data: bytes) -> None:
    with pytest.raises(PriceListError):
        read_second(data)
