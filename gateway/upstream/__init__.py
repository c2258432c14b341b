"""Calling providers: the client, the event splitter, the local engine's socket."""
