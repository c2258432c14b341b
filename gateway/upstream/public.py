"""Which addresses are out in the public: all that a client may make the gateway connect to."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from gateway.upstream.resolve import Address, Resolver

# Networks of IPv6 that lead to an IPv4 address inside: NAT64 (RFC 6052) in the last 32 bits, and IPv4-compatible ones.
_LAST_BITS: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
# Global by their number in some versions of Python, and yet not out there: protocol assignments (RFC 6890), among them
# a cloud's metadata; the relays of 6to4 (RFC 7526); Azure's service to its own machines ("What is IP address
# 168.63.129.16?" in its documentation); NAT64 of a network's own making, which may hold an IPv4 address anywhere
# (RFC 8215); the former site-local addresses (RFC 3879).
_NOT_OUT_THERE: Final = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "64:ff9b:1::/48", "fec0::/10"))
)


def is_public(text: str) -> bool:
    """Whether the address may be connected to for a stranger; false for everything that could be ours."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(str(inner))
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    return not any(address in network for network in _NOT_OUT_THERE if network.version == address.version)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that packets to *address* may end at."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _LAST_BITS):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


class PublicResolver(Resolver):
    """Gives addresses only where all that a name resolves to are public; what it gives is what is connected to.

    So a name cannot mean one thing when it is checked and another when it is used.
    """

    async def resolve(self, host: str, port: int) -> list[Address]:
        addresses = await super().resolve(host, port)
        if not all(is_public(str(target[0])) for _, target in addresses):
            raise socket.gaierror(socket.EAI_FAIL, "not a public address")
        return addresses
