"""What has to be there for each endpoint and each operation, in the places that are easily forgotten."""

from __future__ import annotations

from adapters.types import Operation
from gateway.data_plane.plane import ENDPOINTS
from gateway.telemetry.names import OPERATION_NAMES


def test_every_operation_has_one_endpoint() -> None:
    assert sorted(endpoint.operation for endpoint in ENDPOINTS) == sorted(Operation)


def test_every_operation_has_a_name_in_metrics() -> None:
    assert sorted(OPERATION_NAMES) == sorted(Operation)
