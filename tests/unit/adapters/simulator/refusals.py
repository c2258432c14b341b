"""What counts as a refusal of a simulated provider."""

from __future__ import annotations

from adapters.failures import read_error
from adapters.simulator.engine import Simulator
from tests.unit.adapters.simulator.asking import Heard


def assert_refused(sim: Simulator, heard: Heard, *statuses: int | None) -> None:
    """It came with one of *statuses*, if any are given, and in an envelope that has a message."""
    fields = read_error(heard.raw)

    assert heard.status in [status for status in statuses if status is not None] or not any(statuses), heard.raw
    assert heard.status in (400, 401, 404, 413, 422, *_validation_statuses(sim))
    assert fields is not None, heard.raw
    assert fields.message


def _validation_statuses(sim: Simulator) -> tuple[int, ...]:
    return tuple(status for case in sim.spec.errors.cases if case.case == "validation" for status in case.status)
