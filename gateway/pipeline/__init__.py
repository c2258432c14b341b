"""The road of every request, one file a step."""
