"""Answers after which a target rests, and a clock that can be put forward until it has."""

from __future__ import annotations

import time

from tests.fakes.gateway import RunningGateway
from tests.fakes.openai_answers import refusal, whole
from tests.fakes.scripted_server import Script

WAIT = "Retry-After: 20\r\n"
LIMITED: Script = [refusal(429, "slow down", WAIT)]
BUSY: Script = [refusal(503, "full", WAIT)]
GOOD: Script = [whole()]


class Ahead:
    """The gateway's clock, which a test can put forward."""

    def __init__(self, gateway: RunningGateway) -> None:
        self.seconds = 0.0
        gateway.services.clock = lambda: time.monotonic() + self.seconds
