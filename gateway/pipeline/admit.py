"""Lets a request in."""

from __future__ import annotations

from gateway.errors import DrainingError, PermissionDeniedError
from gateway.pipeline.call import Call
from gateway.services import Services


def admit(call: Call, services: Services) -> None:
    """Count *call* among those under way, or raise why it may not be. Whoever calls this takes it out at the end.

    Rate limits and concurrency leases take their place here; today it refuses what the key may not use and what
    comes while the gateway is stopping.
    """
    if services.draining:
        raise DrainingError("The gateway is shutting down; send the request again.", headers={"retry-after": "1"})
    model = call.model
    if model is not None and not call.key.allows(model.id):
        raise PermissionDeniedError(f"This key may not use the model '{model.id}'.", param="model")
    services.in_flight.add(call)
