"""Which addresses are the open internet, and which are this machine, its network or nobody's.

The tables are IANA's IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890). They are written out: what
the standard library calls `is_global` differs between its versions.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network; Linux takes 0.0.0.0 for itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by a provider's customers (RFC 6598)
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local; clouds serve credentials there
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# IPv6 is the other way round: one block is given out, the rest is not the internet.
_V6_GLOBAL = IPv6Network("2000::/3")
_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments; Teredo (2001::/32) is looked into below all the same
        "2001:db8::/32",
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("64:ff9b::/96")  # NAT64 (RFC 6052): leads to the IPv4 address in it
_SIX_TO_FOUR = IPv6Network("2002::/16")


def is_public(text: str) -> bool:
    """True when `text` is an address of the open internet, whatever form it is written in.

    An IPv6 address that carries an IPv4 one (mapped, NAT64, 6to4) is judged by both. What is no address at
    all, or has a zone (`fe80::1%eth0`), is not public.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return all(_public(one) for one in _meant(address))


def is_loopback(text: str) -> bool:
    """True when a connection to `text` stays on this machine by its address alone."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return any(one.is_loopback or one.is_unspecified for one in _meant(address))


def _meant(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Every address that a packet to this one may end at."""
    if isinstance(address, IPv4Address):
        yield address
        return
    number = int(address)
    if address in _MAPPED or address in _TRANSLATED:
        yield IPv4Address(number & 0xFFFFFFFF)
    elif address in _SIX_TO_FOUR:
        yield address
        yield IPv4Address(number >> 80 & 0xFFFFFFFF)
    else:
        yield address


def _public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _V4)
    return (
        address.scope_id is None and address in _V6_GLOBAL and not any(address in network for network in _V6)
    )
