"""What is wrong with a configuration: every problem at once, each with its place."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.located_yaml import Problem

__all__ = ["ConfigError", "Problem"]


class ConfigError(Exception):
    """The configuration cannot be used; *problems* are all that were found. Holds no secret."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda p: (p.line == 0, p.line, p.column))
        super().__init__(self.render())

    def render(self) -> str:
        """The text for a terminal: each problem, then how many there are."""
        count = len(self.problems)
        return "\n".join(map(str, self.problems)) + f"\n{count} error{'s' if count != 1 else ''}; nothing was started."
