"""What all sections of the configuration file have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A mapping of the file: never changed once read, and a key that is not known is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
