"""Options that several commands have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="FILE", help="The file; else GATEWAY_CONFIG, else none.")
]
