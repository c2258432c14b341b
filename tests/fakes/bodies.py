"""Bodies as the pipeline has them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from adapters.types import Body


def body_of(**members: Any) -> Body:
    """A request body of these parameters."""
    return {name: msgspec.Raw(json.dumps(value).encode()) for name, value in members.items()}
