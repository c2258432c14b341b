"""Durations and sizes."""

from __future__ import annotations

import pytest

from gateway.config.units import seconds, size_bytes, size_text


@pytest.mark.parametrize(
    ("text", "value"), [("500ms", 0.5), ("30s", 30.0), ("1.5m", 90.0), ("2h", 7200.0), ("90d", 7776000.0)]
)
def test_a_duration_is_read_as_seconds(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "30", 30, "s", "-1s", "1 s", "1y", "1s2", None, True, "1e3s", "٣s"])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds(text)


@pytest.mark.parametrize(
    ("text", "value"), [("20MiB", 20971520), ("1KB", 1000), ("12B", 12), (7, 7), ("7", 7), ("1.5KiB", 1536)]
)
def test_a_size_is_read_as_bytes(text: object, value: int) -> None:
    assert size_bytes(text) == value


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 MiB", "1mib", None, True, 1.5])
def test_what_is_no_size_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        size_bytes(text)


@pytest.mark.parametrize("value", [1, 1000, 1024, 20 * 1024**2, 3 * 1024**3, 1536])
def test_a_size_as_text_reads_back(value: int) -> None:
    assert size_bytes(size_text(value)) == value
