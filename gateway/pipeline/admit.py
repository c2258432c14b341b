"""Lets a request in, and gives back what it held when it is over."""

from __future__ import annotations

from types import TracebackType

import msgspec

from gateway.errors import DrainingError, PermissionDeniedError
from gateway.pipeline.call import Call
from gateway.services import Services


class Admission(msgspec.Struct, eq=False):
    """The leases of one request: a context that returns them on every way out.

    Rate limits and concurrency leases take their place here; today it refuses what the key may not use and what
    comes while the gateway is stopping, and it knows which requests are under way.
    """

    call: Call
    services: Services

    def __enter__(self) -> None:
        call, services = self.call, self.services
        if services.draining:
            raise DrainingError("The gateway is shutting down; send the request again.", headers={"retry-after": "1"})
        model = call.model
        if model is not None and not call.key.allows(model.id):
            raise PermissionDeniedError(f"This key may not use the model '{model.id}'.", param="model")
        services.in_flight.add(call)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.services.in_flight.discard(self.call)
