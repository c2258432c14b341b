"""Numbers as LiteLLM's files write them, in our units."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

_MILLION = 1_000_000
_DEAREST = 1_000_000
"""USD per million tokens; more is a slip of the pen, and our configuration says so."""


def number(value: Any) -> Decimal | None:
    """*value* as a number that is not negative; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None


def count(value: Any) -> int | None:
    """*value* as a whole number from 1; None when it is none."""
    found = number(value)
    return int(found) if found is not None and found >= 1 and found == int(found) else None


def duration(seconds: Any) -> str | None:
    """Seconds as ``30s`` or ``500ms``; None for what is no length of time."""
    found = number(seconds)
    if found is None or not 0 < found <= 366 * 86400:
        return None
    if found == found.to_integral_value():
        return f"{int(found)}s"
    return f"{plain(found * 1000)}ms"


def usd_per_million(per_token: Any) -> int | float | None:
    """A price a token as a price a million tokens, the way people write it: 0.00000015 is 0.15."""
    found = number(per_token)
    if found is None:
        return None
    price = found * _MILLION
    if price > _DEAREST:
        return None
    return int(price) if price == price.to_integral_value() else float(plain(price))


def plain(value: Decimal) -> str:
    """Without an exponent and without zeros that say nothing."""
    return f"{value.normalize():f}"
