"""Reads a Dockerfile: its stages, and the instructions of each."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Instruction:
    """One instruction; its lines joined."""

    word: str
    rest: str

    @property
    def arguments(self) -> list[str]:
        """The words after it that are no options."""
        return [word for word in shlex.split(self.rest) if not word.startswith("--")]

    @property
    def options(self) -> list[str]:
        return [word for word in shlex.split(self.rest) if word.startswith("--")]


@dataclass(slots=True)
class Stage:
    """From one FROM to the next."""

    image: str
    name: str = ""
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, word: str) -> list[Instruction]:
        return [one for one in self.instructions if one.word == word]

    def one(self, word: str) -> Instruction:
        (found,) = self.all(word)
        return found

    @property
    def environment(self) -> dict[str, str]:
        pairs = [pair.split("=", 1) for one in self.all("ENV") for pair in one.arguments]
        return dict(pairs)


def read_dockerfile(path: Path) -> tuple[dict[str, str], list[Stage]]:
    """The arguments before the first stage with their defaults, and the stages with those filled in."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        word, _, rest = line.strip().partition(" ")
        if not word:
            continue
        if word == "ARG" and not stages:
            name, _, default = rest.partition("=")
            arguments[name] = default
        elif word == "FROM":
            image, _, name = rest.partition(" AS ")
            stages.append(Stage(re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], image), name.strip()))
        else:
            stages[-1].instructions.append(Instruction(word, rest))
    return arguments, stages
