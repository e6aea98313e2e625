# SPDX-License-Identifier: Apache-2.0
"""Addresses of paths. People and tools write an IPv6 address in many ways, so that only canonical ones are compared: a path
whose connections nobody recognizes would look unused, and would be removed."""

import ipaddress

from .protocol import failed


def canonical(text):
    """The one text of an IP address; text that is no IP address as it is. Sockets of IPv6 name an IPv4 peer in IPv6."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return text
    return str(getattr(address, "ipv4_mapped", None) or address)


def described(path, where):
    """The path of a description with its address in canonical form. `where`: which path this is, for people."""
    try:
        address = ipaddress.ip_address(canonical(str(path.get("traddr"))))
    except ValueError as error:
        raise failed(f"{where}: traddr is no IP address") from error
    # A link-local address needs the name of a device, which each tool writes at another place.
    if address.is_unspecified or getattr(address, "scope_id", None):
        raise failed(f"{where}: traddr has to be the address of one port, without the name of a device")
    family = f"ipv{address.version}"
    if path.get("adrfam", family) != family:
        raise failed(f"{where}: adrfam is not the one of traddr")
    return {**path, "traddr": str(address), "adrfam": family}


def bracketed(address):
    return f"[{address['traddr']}]" if address["adrfam"] == "ipv6" else address["traddr"]


def text_of(address):
    return f"{address['trtype']} {bracketed(address)}:{address['trsvcid']}"


def host_and_port(text):
    """Both parts of "192.0.2.1:4420", "[2001:db8::1]:4420" or, as rdma prints it, "2001:db8::1:4420"."""
    host, _, port = text.rpartition(":")
    return canonical(host.strip("[]")), port


def is_endpoint(text, address):
    return host_and_port(text) == (address["traddr"], address["trsvcid"])
