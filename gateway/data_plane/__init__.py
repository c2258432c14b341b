"""The hot path: what a client sends and gets, without a web framework."""
