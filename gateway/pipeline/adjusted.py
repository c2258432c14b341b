"""What was changed in a request, in the words of ``x-gateway-adjusted``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from adapters.types import Adjustment

_MOST: Final = 64
_LONGEST_NAME: Final = 64
# Visible ASCII without the comma is.
_NOT_OF_A_NAME: Final = re.compile(r"[^!-+\--~]")


def as_text(adjustments: Sequence[Adjustment]) -> str:
    """One line that is safe as a header: clients name parameters as they like, and as many as they like."""
    told = [
        f"{_NOT_OF_A_NAME.sub('?', adjustment.param[:_LONGEST_NAME])}={adjustment.action.value}"
        for adjustment in adjustments[:_MOST]
    ]
    more = len(adjustments) - len(told)
    if more:
        told.append(f"and {more} more")
    return ", ".join(told)
