"""Orders in which to try targets: pure functions over candidates."""
