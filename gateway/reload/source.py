"""Where the configuration comes from, so that it can be read again in the same way."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from gateway.config.environment import CONFIG_VARIABLE
from gateway.settings import Settings, load_settings


class Source:
    """The file, the environment and the flags a gateway was started with. Flags and environment stay as they were."""

    def __init__(
        self, path: Path | None, environ: Mapping[str, str], flags: Mapping[str, object] | None = None
    ) -> None:
        if path is None and environ.get(CONFIG_VARIABLE):
            path = Path(environ[CONFIG_VARIABLE])
        self.path = path
        """None where the environment alone decides."""
        self._environ = environ
        self._flags = flags or {}
        self._loaded: bytes | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return str(self.path) if self.path is not None else "the environment"

    def load(self) -> Settings:
        """Read everything; `ConfigError` with all that is wrong."""
        # Before the file is read: what changes in between shows as a change later.
        self._loaded = self._fingerprint()
        return load_settings(self.path, environ=self._environ, flags=self._flags)

    def has_changed(self) -> bool:
        """Whether the file says something else than when it was last read. One that cannot be read says nothing."""
        now = self._fingerprint()
        return now is not None and now != self._loaded

    def _fingerprint(self) -> bytes | None:
        try:
            # What a pipe says can be read only once.
            if self.path is None or not self.path.is_file():
                return None
            return hashlib.blake2b(self.path.read_bytes(), digest_size=16).digest()
        except OSError:
            return None
