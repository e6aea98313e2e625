# SPDX-License-Identifier: Apache-2.0
"""The attackers, one of each kind. docs/benchmarks.md has a table of them, which scripts/bench hostile writes."""

from dataclasses import dataclass

# Where an attacker runs: a program of the noise's pool, a local user of the attacked gateway's host, a local user of its peer's
# host (who sends from the peer gateway's own address), another host of the network.
POOL, LOCAL, PEER, STRANGER = "pool", "local user", "user of the peer's host", "stranger"
# Numbers of a running victim that the attacker knows.
OWN_CHANNELS, PEER_CHANNELS, CONNECTION = "channels of the gateway", "channels of its peer", "connection"
# The port of a server of the victim's pool that is stopped while the attacker runs.
LISTENER = "listener"


@dataclass(frozen=True)
class Attack:
    """name: also the word of the program. does: for people. program: "neighbour" (verbs), "hostile" (tests/bench/hostile) or
    "connections" (connections.py). arguments: more words. idle: the attacker needs no processor, so that the victim must be as
    fast as alone, not as beside a twin. target: the daemon that is attacked. unread_log: nothing reads the gateway's stderr.
    knows: numbers that the attacker learns. fresh_peer: the peer's gateway starts anew beside the attack, and must get channels.
    forges: the address that a root of another host sends from. own_user: runs as the gateway's own user. least_s: the victim's
    time in which the attack works. growth_mib: the most memory that the daemon may take beside the attack: what the
    attacker's pool is charged for, and some."""

    name: str
    does: str
    program: str = "hostile"
    where: str = POOL
    arguments: tuple = ()
    word: str = ""
    idle: bool = False
    target: str = "gateway"
    unread_log: bool = False
    knows: str = ""
    fresh_peer: bool = False
    forges: str = ""
    own_user: bool = False
    least_s: float = 0
    growth_mib: float = 192

    @property
    def floods(self):
        """Whether it sends packets from another host: the victim must be as fast as beside the same flood to a closed port, which
        takes the machine's processors, too."""
        return self.program == "hostile" and self.where == STRANGER


# segment_bytes of the noise's pool, and what the daemon needs beside it.
_SEGMENTS_MIB = 512 + 128
# Streams that a controller has made before it counts them. Without a bound it is gigabytes within seconds.
_MEMBERS_MIB = 512

ATTACKS = (
    # Descriptors and memory that program and daemon share.
    Attack("blocking_wake", "clears O_NONBLOCK of the eventfd that wakes the worker, and reads it empty before the worker does",
           least_s=2),
    Attack("lingering_socket", "passes TCP sockets whose close waits for ten seconds", idle=True),
    Attack("lingering_socket_before_greeting", "the same before it greets", idle=True),
    Attack("unanswered_file", "passes files of a FUSE file system that answers no close", idle=True),
    Attack("unanswered_file_before_greeting", "the same before it greets", idle=True),
    Attack("unread_files", "leaves files of such a file system unread in 200 connections", idle=True),
    Attack("descriptor_flood", "passes 253 descriptors a message, of sockets that hold themselves"),
    Attack("descriptor_flags", "changes modes, owners and signals of the descriptors that it was given"),
    Attack("truncated_memory", "shortens, empties, seals and locks the memory that the daemon shares"),
    Attack("shared_memory_chaos", "writes random bytes into rings, indices and doorbells"),
    Attack("blocked_memory", "sends from memory whose pages never come", "neighbour", idle=True, own_user=True),
    Attack("dead_blocked_memory", "programs leave while the daemon waits for their memory, which nothing gives back", "neighbour",
           own_user=True, least_s=2),
    # Requests.
    Attack("route_storm", "asks for routes on an id whose events it never reads"),
    Attack("join_storm", "asks for multicast groups on an id whose events it never reads"),
    Attack("unread_answers", "asks for answers with descriptors and reads none"),
    Attack("unread_events", "asks for an event of each completion and reads none", "neighbour"),
    Attack("descriptor_hoard", "creates event channels and contexts until each is refused"),
    Attack("heap_hoard", "creates the deepest queue pairs until they are refused", least_s=3, growth_mib=_SEGMENTS_MIB),
    Attack("object_hoard", "creates objects of each kind until they are refused", growth_mib=_SEGMENTS_MIB),
    Attack("multicast_hoard", "joins every multicast group that it gets, leaves them, begins again", "neighbour"),
    Attack("wildcard_listeners", "listens on every port of all addresses with the longest backlog"),
    Attack("ephemeral_ports", "binds ids to ports that the gateway chooses until one is refused, and goes on asking"),
    Attack("attach_storm", "connects and closes at once"),
    Attack("silent_attaches", "connects and never greets", idle=True),
    Attack("stopped_anywhere", "stops programs (SIGSTOP) somewhere in their set-up"),
    Attack("die_anywhere", "is killed at random moments of its set-up"),
    Attack("shared_session", "eight processes send on one socket at the same time"),
    Attack("odd_messages", "sends empty, cut off, too long and random messages, with descriptors"),
    Attack("unread_log", "the same while nothing reads the daemon's standard error", word="odd_messages", unread_log=True),
    # Packets.
    Attack("malformed_packets", "datagrams of random bytes, and sound ones for random numbers", where=STRANGER),
    Attack("channel_guesses", "resets channels of all numbers", where=STRANGER),
    Attack("channel_opens", "opens channels and confirms each with one probe", where=STRANGER, fresh_peer=True),
    Attack("discovery_flood", "asks without end whether the gateway is one", where=STRANGER, fresh_peer=True),
    Attack("connection_requests", "asks for connections from every queue pair number", where=STRANGER),
    Attack("withdrawn_requests", "asks a stopped server for connections and withdraws each, or makes it stale", where=STRANGER,
           knows=LISTENER),
    Attack("cm_messages_from_everywhere", "messages of the connection manager of each kind, from 65,536 forged addresses",
           where=STRANGER, forges="10.78.0.1", fresh_peer=True),
    Attack("odd_mads", "management datagrams of other classes and methods, cut off or too long", where=STRANGER),
    Attack("congestion_notices", "CNPs for every queue pair number", where=STRANGER),
    Attack("datagrams", "datagrams for every queue pair number", where=STRANGER),
    Attack("forged_channel_guesses", "resets channels of all numbers, from the peer's address", where=STRANGER,
           forges="10.77.0.2", word="channel_guesses"),
    Attack("forged_connection_requests", "asks for connections from the peer's address", where=STRANGER, forges="10.77.0.2",
           word="connection_requests"),
    Attack("discovery_from_everywhere", "asks from 65,536 forged addresses whether the gateway is one", where=STRANGER,
           forges="10.78.0.1", fresh_peer=True),
    Attack("forged_channel_opens", "opens channels from the peer's address and from 65,536 others", where=STRANGER,
           forges="10.77.0.2"),
    Attack("own_address_resets", "resets channels whose numbers it knows, with every epoch", where=PEER, knows=PEER_CHANNELS, least_s=3,
           word="known_channel_resets"),
    Attack("own_address_frames", "frames into channels whose numbers it knows, with every epoch", where=PEER,
           knows=OWN_CHANNELS, least_s=3, word="known_channel_frames"),
    Attack("own_address_stale_requests", "asks anew for a connection whose queue pair and GUID it knows", where=PEER, knows=CONNECTION,
           word="stale_requests"),
    Attack("own_address_channel_guesses", "resets channels of all numbers", where=PEER, word="channel_guesses"),
    Attack("own_address_connection_requests", "asks for connections from every queue pair number", where=PEER,
           word="connection_requests"),
    Attack("source_ports", "binds every UDP source port of the gateway's host", where=LOCAL, idle=True, fresh_peer=True),
    Attack("source_ports_at_start", "the same, and the name of the instance lock, while the gateway of its host starts", where=PEER,
           idle=True, fresh_peer=True, word="source_ports"),
    # Pages and the controller's port.
    Attack("slow_scrapes", "900 requests of the metrics page that come byte by byte", "connections", LOCAL, ("slow",)),
    Attack("silent_scrapes", "900 connections to the metrics page without a request", "connections", LOCAL, ("silent",)),
    Attack("endless_scrapes", "requests of the metrics page whose header does not end", "connections", LOCAL,
           ("endless",)),
    Attack("silent_tls", "900 connections to the controller without a TLS handshake", "connections", STRANGER, ("silent",),
           target="controller"),
    Attack("half_tls_handshakes", "900 connections to the controller with the beginning of one", "connections", STRANGER, ("hellos",),
           target="controller"),
    Attack("half_open_streams", "HTTP/2 connections without certificate, each with many streams that never end", "connections",
           STRANGER, ("streams",), target="controller"),
    Attack("member_streams", "a person with a certificate and no role: the same, on connections that count as a member's",
           "connections", STRANGER, ("member_streams",), target="controller", least_s=3, growth_mib=_MEMBERS_MIB),
    Attack("member_resets", "the same, each stream is reset at once", "connections", STRANGER, ("member_resets",),
           target="controller", least_s=3, growth_mib=_MEMBERS_MIB),
    Attack("stream_resets", "HTTP/2 connections that open streams and reset them at once", "connections", STRANGER, ("resets",),
           target="controller"),
    # Noises of scripts/bench neighbours.
    Attack("many_qps", "1,024 busy queue pairs", "neighbour"),
    Attack("tiny_writes", "8-byte WRITEs, 4,096 under way", "neighbour"),
    Attack("bulk_writes", "1 MiB WRITEs, 64 under way", "neighbour"),
    Attack("error_storm", "requests that end in errors", "neighbour"),
    Attack("doorbell_spam", "a doorbell for each request on 512 queue pairs", "neighbour"),
    Attack("rnr_storm", "SENDs to a receiver that posts no receives", "neighbour"),
    Attack("atomics_one_line", "atomics on one cache line", "neighbour"),
    Attack("read_amplification", "READs of 1 MiB, 128 under way", "neighbour"),
    Attack("control_storm", "registers, creates and destroys without end", "neighbour"),
)
