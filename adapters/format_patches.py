"""Patches for ``response_format``: a JSON schema in the dialect of a provider, and forms that it lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from adapters.draft import Draft
from adapters.parameter_patches import raw
from adapters.patches import leave_out
from adapters.schema_dialect import rewrite
from adapters.spec_request import DialectSpec
from adapters.types import Action
from adapters.vocabulary import SchemaPlace

_decode = msgspec.json.Decoder().decode

_FORMAT: Final = "response_format"
_ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class ResponseFormat:
    """Say what form the answer is to have as the target wants it said; a form it lacks is refused.

    *lacking* are types it lacks, with a hint for each. *object_as_schema*: any JSON object is said as a schema.
    """

    provider: str
    lacking: Mapping[str, str]
    dialect: DialectSpec | None = None
    object_as_schema: bool = False
    closed: bool = False
    """Members without a value may not be sent."""

    def __call__(self, draft: Draft) -> None:
        wanted = _decode(draft.body[_FORMAT])
        if not isinstance(wanted, dict):
            if wanted is None:
                del draft.body[_FORMAT]
            return
        kind: Any = wanted.get("type")
        if kind == "json_object" and self.object_as_schema:
            said = {"type": "json_schema", "json_schema": {"name": "object", "schema": dict(_ANY_OBJECT)}}
            draft.body[_FORMAT] = raw(said)
            draft.adjusted(_FORMAT, Action.REWRITTEN)
            if self.dialect is not None:
                self._rewrite(draft, said, self.dialect)
        elif isinstance(kind, str) and kind in self.lacking:
            if kind == "text":
                del draft.body[_FORMAT]
            else:
                leave_out(draft, _FORMAT, self.provider, self.lacking[kind] or f"It has no '{kind}'.")
        elif kind == "json_schema" and self.dialect is not None:
            self._rewrite(draft, wanted, self.dialect)
        elif self.closed and None in wanted.values():
            draft.body[_FORMAT] = raw(_without_nulls(wanted))

    def _rewrite(self, draft: Draft, wanted: dict[str, Any], dialect: DialectSpec) -> None:
        given = wanted.get("json_schema")
        if not isinstance(given, dict) or not isinstance(given.get("schema"), dict):
            return
        said = _without_nulls(given)
        bound = said.get("strict") is True or dialect.strict is True
        if bound or not dialect.only_strict:
            said["schema"] = rewrite(said["schema"], dialect)
        if dialect.strict is not None:
            said["strict"] = dialect.strict
        if dialect.name_required:
            said.setdefault("name", "answer")
        match dialect.place:
            case SchemaPlace.VALUE:
                changed = {"type": "json_schema", "value": said["schema"]}
            case SchemaPlace.JSON_OBJECT:
                changed = {"type": "json_object", "schema": said["schema"]}
            case _:
                changed = {"type": "json_schema", "json_schema": said}
        if changed != wanted:
            draft.body[_FORMAT] = raw(changed)
            draft.adjusted(_FORMAT, Action.REWRITTEN)


def _without_nulls(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
