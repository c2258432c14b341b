"""What the data plane reads of a request's headers; all others end here."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from adapters.draft import Unsupported
from gateway.data_plane.exchange import ClientHead
from gateway.data_plane.known_body import KnownBody
from gateway.data_plane.unsupported import UNSUPPORTED_HEADER, read_unsupported
from gateway.errors import GatewayError, InvalidRequestError, LoopDetectedError
from gateway.pipeline.authenticate import Credentials
from gateway.request_id import safe_request_id
from gateway.services import HOP_HEADER, Services

_HOPS: Final = re.compile(rb"[0-9a-f]{16}(?:, [0-9a-f]{16})*")
_MOST_HOPS: Final = 32


class HeadFacts(msgspec.Struct, eq=False):
    """What the pipeline acts on. *refusal* is what is wrong with the headers, for whoever may ask anything at all."""

    credentials: Credentials = ()
    request_id: str | None = None
    """The client's own, where it is harmless."""
    client_retries: bool = False
    time_limit_seconds: float | None = None
    hops: bytes = b""
    says_more: bool = False
    """Whether the last three are anything but what they are without a word of the client."""
    unsupported: Unsupported | None = None
    refusal: GatewayError | None = None
    body: KnownBody | None = None
    """The body that came last with this head, where another one may differ from it in nothing but its messages."""
    bodies_to_learn: int = 4
    """How often a body is still taken for one that may come again, after others that did not."""


def head_facts(head: ClientHead, services: Services) -> HeadFacts:
    """The facts in *head*. Never raises: a refusal has to carry the request's id, which stands there as well."""
    facts = HeadFacts()
    try:
        for name, value in head.headers:
            if name == b"x-request-id":
                facts.request_id = safe_request_id(value)
        _read(facts, head, services.instance_id)
        facts.says_more = facts.client_retries or facts.time_limit_seconds is not None or facts.hops != b""
        facts.credentials = services.authenticator.credentials(head.headers)
    except GatewayError as refusal:
        # Kept for as long as the head: the traceback would keep this frame, and the frame the refusal.
        facts.refusal = refusal.with_traceback(None)
    return facts


def _read(facts: HeadFacts, head: ClientHead, instance_id: bytes) -> None:
    for name, value in head.headers:
        if name == b"x-stainless-retry-count":
            facts.client_retries = value != b"0"
        elif name == b"x-gateway-timeout":
            facts.time_limit_seconds = _seconds(value)
        elif name == UNSUPPORTED_HEADER:
            facts.unsupported = read_unsupported(value)
        elif name == HOP_HEADER:
            facts.hops = _hops(value, instance_id)


def _seconds(value: bytes) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise InvalidRequestError("The x-gateway-timeout header has to be seconds, above 0 and at most 86400.")
    return seconds


def _hops(value: bytes, instance_id: bytes) -> bytes:
    """The gateways this request has passed; whatever else stands in the header is nothing to pass on."""
    if instance_id in value or value.count(b",") >= _MOST_HOPS:
        raise LoopDetectedError("This request has passed this gateway before: a provider's base_url points back at it.")
    return value if _HOPS.fullmatch(value) else b""
