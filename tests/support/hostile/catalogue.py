# SPDX-License-Identifier: Apache-2.0
"""The attackers, one of each kind. docs/operate/security.md lists them with what must hold."""

from dataclasses import dataclass

from netlab.neighbours import NOISES

# Where an attacker runs: a program of the noise's pool, a local user of the gateway's host, another host of the network.
POOL, LOCAL, STRANGER = "pool", "local user", "stranger"


@dataclass(frozen=True)
class Attack:
    """name: also the word of the program. program: "neighbour" (verbs), "hostile" (tests/bench/hostile) or "connections"
    (connections.py). arguments: more words. idle: the attacker needs no processor, so that the victim must be as fast as
    alone, not as beside a twin. target: the daemon that is attacked. unread_log: nothing reads the gateway's stderr."""

    name: str
    program: str
    where: str
    arguments: tuple = ()
    word: str = ""
    idle: bool = False
    target: str = "gateway"
    unread_log: bool = False


_SESSION = ("blocking_wake", "lingering_socket", "lingering_socket_before_greeting", "route_storm", "join_storm", "descriptor_hoard",
            "heap_hoard", "object_hoard", "unread_answers", "attach_storm", "silent_attaches", "odd_messages", "shared_memory_chaos",
            "die_anywhere", "wildcard_listeners")
_IDLE = {"lingering_socket", "lingering_socket_before_greeting", "silent_attaches", "blocked_memory"}
_PACKETS = ("malformed_packets", "channel_guesses", "channel_opens", "discovery_flood", "connection_requests", "congestion_notices",
            "datagrams")

ATTACKS = (
    *(Attack(name, "hostile", POOL, idle=name in _IDLE) for name in _SESSION),
    *(Attack(name, "hostile", STRANGER) for name in _PACKETS),
    # The gateway's own address, by a user of its host.
    *(Attack(f"own_address_{name}", "hostile", LOCAL, word=name) for name in ("channel_guesses", "connection_requests")),
    Attack("slow_scrapes", "connections", LOCAL, ("slow",), idle=True),
    Attack("silent_scrapes", "connections", LOCAL, ("silent",), idle=True),
    Attack("silent_tls", "connections", STRANGER, ("silent",), idle=True, target="controller"),
    Attack("half_tls_handshakes", "connections", STRANGER, ("hellos",), idle=True, target="controller"),
    Attack("unread_log", "hostile", POOL, word="odd_messages", unread_log=True),
    *(Attack(name, "neighbour", POOL, idle=name in _IDLE) for name in NOISES),
)
