"""What became of each part of an imported file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from adapters.located_yaml import dotted
from gateway.importing.located import Located, Path


class Fate(StrEnum):
    """What became of a key."""

    MAPPED = "mapped"  # it means the same here
    APPROXIMATED = "approximated"  # something near it; the text says what differs
    NOT_YET = "not yet"  # this version has no such feature, another will
    DROPPED = "dropped"  # nothing like it here; the text says why


@dataclass(frozen=True, slots=True)
class Note:
    """One line of the report. Never holds a value that could be a secret."""

    fate: Fate
    line: int
    path: str
    text: str
    about: tuple[str, str] | None = None
    """The section and name in our configuration that this is about, where there is one."""


@dataclass(slots=True)
class Report:
    """Everything noted, and the variables the new configuration needs."""

    source: Located
    notes: list[Note] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    """By name, with what each is for."""

    def note(self, fate: Fate, path: Path, text: str, about: tuple[str, str] | None = None) -> None:
        note = Note(fate, self.source.line(path), dotted(path), text, about)
        if note not in self.notes:
            self.notes.append(note)

    def mapped(self, path: Path, text: str, about: tuple[str, str] | None = None) -> None:
        self.note(Fate.MAPPED, path, text, about)

    def approximated(self, path: Path, text: str, about: tuple[str, str] | None = None) -> None:
        self.note(Fate.APPROXIMATED, path, text, about)

    def not_yet(self, path: Path, text: str, about: tuple[str, str] | None = None) -> None:
        self.note(Fate.NOT_YET, path, text, about)

    def dropped(self, path: Path, text: str, about: tuple[str, str] | None = None) -> None:
        self.note(Fate.DROPPED, path, text, about)

    def of(self, *fates: Fate) -> list[Note]:
        """The notes of these fates, in the order of the file."""
        return sorted((note for note in self.notes if note.fate in fates), key=lambda note: note.line)
