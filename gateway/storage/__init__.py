"""The SQL store: keys and the request log."""
