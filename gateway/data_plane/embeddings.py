"""``POST /v1/embeddings``: strings or token ids in, floats or base64 out (the SDKs' default)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from adapters.types import Operation
from gateway.data_plane.endpoint import Endpoint
from gateway.data_plane.parameters import STRING, TEXTS_OR_TOKENS, Check, check_parameters, integer, is_set
from gateway.errors import MissingParameterError

if TYPE_CHECKING:
    from gateway.pipeline.call import Call

_CHECKS: Final[Mapping[str, Check]] = {
    "input": TEXTS_OR_TOKENS,
    "dimensions": integer(1),
    "encoding_format": Check(Literal["float", "base64"], "'float' or 'base64'"),
    "user": STRING,
}


def _read(call: Call) -> None:
    if not is_set(call.body, "input"):
        raise MissingParameterError("input")
    values = check_parameters(call.body, _CHECKS)
    call.encoding = values.get("encoding_format") or "float"


EMBEDDINGS: Final = Endpoint("/embeddings", Operation.EMBEDDINGS, _read)
