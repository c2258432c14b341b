"""Who may use a route: everybody, whoever has a key, or the operator."""

from __future__ import annotations

from enum import StrEnum


class Scope(StrEnum):
    """What a route asks of its caller."""

    PUBLIC = "public"
    KEY = "key"
    ADMIN = "admin"
