# SPDX-License-Identifier: Apache-2.0
"""Channels between two gateways that share keys of a file.

With tags, while keys are replaced, towards a gateway without keys, and with frames that are authenticated or encrypted.
"""

import contextlib
import json
import os
import secrets
import signal

from netlab.fleet import eventually

from .case import Case, expect
from .check_cases import endless_traffic, rdma_check

_UNAUTHENTICATED = "rocegw_channel_unauthenticated_events_total"
_OPENED = "rocegw_channel_open_events_total"


def _write_keys(host, keys):
    path = os.path.join(host.directory, "fleet.key")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
        file.write("\n".join(keys) + "\n")
    return path


def _with_keys(host, keys, policy, protection="off"):
    path = _write_keys(host, keys)
    return host.changed_config("channels: enabled", f"channels: enabled, authentication: {policy}, "
                                                    f"protection: {protection}, key_file: {path}")


def _replace(host, keys):
    _write_keys(host, keys)
    host.daemon.signal(signal.SIGHUP)


def _required(pair):
    """Both have a key and need one; the key is replaced in three steps while a program works."""
    first, second = secrets.token_hex(16), secrets.token_hex(16)
    with contextlib.ExitStack() as changes:
        for host in (pair.left, pair.right):
            changes.enter_context(_with_keys(host, [first], "required"))
        ran = rdma_check(pair, True, "cm", cases="transfer.mixed*")
        with endless_traffic(pair) as client:
            for keys in ([first, second], [second, first], [second]):
                for host in (pair.left, pair.right):
                    _replace(host, keys)
                before = pair.left.counters()["rocegw_channel_rx_packets_total"]
                eventually("frames after a key was replaced",
                           lambda old=before: pair.left.counters()["rocegw_channel_rx_packets_total"] > old + 100)
                ran += rdma_check(pair, False, "socket", cases="transfer.mixed*")
            expect(client.running, f"the program ended while keys were replaced:\n{client.output}")
        for host in (pair.left, pair.right):
            counters = host.counters()
            expect(counters[_OPENED] > 0, f"{host.name} opened no channel")
            expect(counters[_UNAUTHENTICATED] == 0, f"{host.name} opened channels without tags")
            for shown in (host.log(), host.control("status"), host.control("-o", "json", "get", "channels")):
                expect(first not in shown and second not in shown, f"{host.name} shows a key:\n{shown}")
    return f"{len(ran)} rdma_check cases"


def _peer_without_key(pair):
    """A peer without a key is served without tags and counted, or gets plain RoCEv2."""
    key = secrets.token_hex(16)
    with _with_keys(pair.left, [key], "preferred"):
        ran = rdma_check(pair, True, "cm", cases="transfer.mixed*") + rdma_check(pair, False, "socket", cases="transfer.mixed*")
        counters = pair.left.counters()
        expect(counters[_UNAUTHENTICATED] > 0, "channels without tags were not counted")
        expect(counters["rocegw_discovery_unauthenticated_total"] > 0, "the peer without a key was not counted")
        expect("has no key of the fleet" in pair.left.log(), "the log does not name the peer without a key")
    with _with_keys(pair.left, [key], "required"):
        ran += rdma_check(pair, True, "cm", cases="transfer.mixed*") + rdma_check(pair, False, "socket", cases="transfer.mixed*")
        expect(pair.left.counters()[_OPENED] == 0, "a channel was opened to a peer without a key")
    return f"{len(ran)} rdma_check cases"


def _other_key(pair):
    """Two gateways with different keys take each other for RDMA devices."""
    with _with_keys(pair.left, [secrets.token_hex(16)], "preferred"), \
            _with_keys(pair.right, [secrets.token_hex(16)], "preferred"):
        ran = rdma_check(pair, True, "cm", cases="transfer.mixed*")
        expect(pair.left.counters()[_OPENED] == 0, "a channel was opened to a peer with another key")
    return f"{len(ran)} rdma_check cases"


def _seals(host):
    """Returns (protection, key, peer's key) of the host's open channels."""
    rows = json.loads(host.control("-o", "json", "get", "channels")).get("channels", [])
    return {(row["protection"], row.get("keyId", 0), row.get("peerKeyId", 0)) for row in rows if row["state"] == "open"}


def _protected(pair):
    """Frames are authenticated, or encrypted as soon as one end asks for it; the key is replaced while a program works."""
    first, second = secrets.token_hex(16), secrets.token_hex(16)
    ran = []
    for own, other, level in (("preferred", "required", "authenticated"), ("preferred", "encrypt", "encrypted")):
        with _with_keys(pair.left, [first, second], "preferred", own), \
                _with_keys(pair.right, [first, second], "preferred", other):
            ran += rdma_check(pair, True, "cm", cases="transfer.mixed*")
            with endless_traffic(pair) as client:
                expect({seal[0] for seal in _seals(pair.left)} == {level}, f"channels are {_seals(pair.left)}")
                old = {key for seal in _seals(pair.left) for key in seal[1:]}
                # Without SIGHUP: the gateways notice it.
                for host in (pair.left, pair.right):
                    _write_keys(host, [second, first])
                eventually("a channel with the other key", lambda old=old: any(
                    own_key not in old and peer_key not in old for _, own_key, peer_key in _seals(pair.left)))
                expect(client.running, f"the program ended while the key was replaced:\n{client.output}")
            for host in (pair.left, pair.right):
                counters = host.counters()
                expect(counters["rocegw_channel_sealed_rx_packets_total"] > 1000, f"{host.name} opened no seals")
                expect(counters["rocegw_channel_unsealed_events_total"] == 0, f"{host.name} has channels without seals")
                expect(counters["rocegw_channel_rx_packets_total"] > 0, f"{host.name} took no frames")
    with _with_keys(pair.left, [first], "preferred", "required"), _with_keys(pair.right, [first], "preferred"):
        ran += rdma_check(pair, True, "cm", cases="transfer.mixed*")
        expect(pair.left.counters()[_OPENED] == 0, "a channel was opened to a peer that does not protect")
    return f"{len(ran)} rdma_check cases"


def authentication_cases():
    return [Case("authentication.required", 1500, _required, "channels"),
            Case("authentication.peer_without_key", 1500, _peer_without_key, "channels"),
            Case("authentication.other_key", 1500, _other_key, "channels"),
            Case("authentication.protected", 1500, _protected, "channels")]
