"""What a child process tells its parent: one JSON object a line, on what was its standard output."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TextIO


def claim_stdout() -> TextIO:
    """A stream for reports; what libraries print on standard output goes to standard error from now on."""
    report = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return report


def tell(report: TextIO, message: Mapping[str, str]) -> None:
    """Send *message*; ``{"failed": reason}`` says that nothing more will come of the process."""
    print(json.dumps(message), file=report, flush=True)
