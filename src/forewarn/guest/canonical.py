"""Who calls: addresses in one spelling."""

from ipaddress import IPv6Address, ip_address


def canonical(address: str) -> str:
    """Spell an address the one way in which addresses are compared.

    A zone is left out, and an IPv4 address that came through an IPv6 socket is an IPv4 address.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.compressed
