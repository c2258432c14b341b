"""What of a provider's words may be shown: no keys, no accounts, no addresses of machines, no paths on them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_SHORTEST: Final = 4
_KEY: Final = re.compile(
    r"\b(?:sk|gsk|csk|fw|hf|nvapi|xai|gw|tgp_v1)[-_](?=[\w*.-]*[0-9*])[\w*.-]{8,}"  # prefixes providers give their keys
    r"|\bBearer\s+[A-Za-z0-9._~+/=*-]{6,}"
    r"|\b[A-Za-z0-9]{2,8}[\w-]*\*{3,}\w*"  # a key that is masked in the middle still tells whose it is
)
_ACCOUNT: Final = re.compile(r"\b(?:org|proj|acct)[-_](?=\w*[0-9])\w{6,}|(?<=\baccounts/)(?!fireworks/)[\w-]+")
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s\"'<>)\]}]+", re.IGNORECASE)
_HOST: Final = re.compile(
    r"\b(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9])?\.)+[a-z]{2,24}:[0-9]{2,5}\b"
    r"|\blocalhost(?::[0-9]{1,5})?\b"
    r"|\b(?:[a-z0-9_-]+\.)+(?:internal|local|lan|intra|corp|svc|home\.arpa|localdomain)\b"
    r"|\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{1,5})?\b"
    r"|\[[0-9a-f]*:[0-9a-f:.%]+\](?::[0-9]{1,5})?",
    re.IGNORECASE,
)
# A name without a dot is an address only where the words around it say so: "limit:4096" is none.
_NAMED_HOST: Final = re.compile(
    r"(\b(?:host|to|at|from|upstream)\s+['\"(]*)[a-z0-9][a-z0-9-]*:[0-9]{2,5}\b", re.IGNORECASE
)
_PATH: Final = re.compile(
    r"(?<![\w/\]])/(?:root|home|usr|var|opt|mnt|srv|tmp|etc|data|app|models|workspace|Users)(?:/[\w.@+-]+)+"
    r"|\b[A-Za-z]:\\[^\s\"']+"
)


class Scrubber:
    """Blots out *secrets* wherever they stand, and what looks like one, or tells of machines and accounts."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        # The longest first: one secret may begin like another. One of a few letters would blot out half of every text.
        self._secrets = tuple(sorted((secret for secret in secrets if len(secret) >= _SHORTEST), key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        text = _KEY.sub("[key]", text)
        text = _URL.sub("[address]", text)
        text = _ACCOUNT.sub("[account]", text)
        text = _NAMED_HOST.sub(r"\1[address]", _HOST.sub("[address]", text))
        return _PATH.sub("[path]", text)
