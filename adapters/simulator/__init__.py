"""Rehearsals: a provider played from its own file, so that what it takes, refuses and answers has one home."""
