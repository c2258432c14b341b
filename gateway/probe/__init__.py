"""Asks a provider for what its file says of it, and tells where the two differ."""
