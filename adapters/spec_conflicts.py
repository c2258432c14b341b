"""The section of a provider file about combinations that do not go together, and how their conditions are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator

from adapters.spec_parts import Fact
from adapters.vocabulary import Patch


class ConditionKind(StrEnum):
    """What a word of a conflict's ``when`` says of a parameter."""

    USED = "used"  # name: there, and not a value that means off
    UNUSED = "unused"  # no_name
    IS = "is"  # name=a|b
    IS_NOT = "is_not"  # name!=a|b: also true where it is not there
    OVER = "over"  # name>1
    TEXT = "text"  # name:string: written as text
    MODEL = "model"  # model~a|b: its canonical name starts with one of them


@dataclass(frozen=True, slots=True)
class Condition:
    """One word of a conflict's ``when``, read."""

    kind: ConditionKind
    param: str
    """Dotted for a member of a parameter's object; of ``response_format``, the member is its type."""
    values: tuple[str, ...] = ()


FORCED: Final = ("required", "named")
"""What ``tool_choice=forced`` stands for."""
_WORD: Final = re.compile(r"(?P<name>[a-z][a-zA-Z0-9_.]*)(?:(?P<sign>!=|=|~|>|:)(?P<value>[^\s|][^\s]*))?\Z")
_SIGNS: Final[Mapping[str, ConditionKind]] = {
    "=": ConditionKind.IS, "!=": ConditionKind.IS_NOT, ">": ConditionKind.OVER, ":": ConditionKind.TEXT,
    "~": ConditionKind.MODEL,
}  # fmt: skip


def read_condition(word: str) -> Condition:
    """The condition *word* stands for; ValueError when it is none."""
    match = _WORD.match(word)
    if match is None:
        raise ValueError(f"'{word}' is not a condition: name, no_name, name=value, name!=value, name>1, name:string")
    name, sign, value = match["name"], match["sign"], match["value"]
    if sign is None:
        if name.startswith("no_"):
            return Condition(ConditionKind.UNUSED, name.removeprefix("no_"))
        return Condition(ConditionKind.USED, name)
    kind = _SIGNS[sign]
    if (kind is ConditionKind.MODEL) != (name == "model") or (kind is ConditionKind.TEXT and value != "string"):
        raise ValueError(f"'{word}' is not a condition; models are told by model~name, and text by name:string")
    values = tuple(value.split("|"))
    return Condition(kind, name, FORCED if (name, values) == ("tool_choice", ("forced",)) else values)


def _condition(word: str) -> str:
    read_condition(word)
    return word


class ConflictSpec(Fact):
    """A combination the provider refuses."""

    when: tuple[Annotated[str, AfterValidator(_condition)], ...]
    result: int | str
    """The status it is refused with, or a word for what else becomes of it."""
    code: str | None = None
    message_like: str | None = None
    patch: Patch | None = None
    only_after: int | None = None
    """Patch only once the provider has refused the combination with this status: it may well take it."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """``when``, read; all of them have to hold."""
        return tuple(read_condition(word) for word in self.when)
