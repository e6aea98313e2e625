# SPDX-License-Identifier: Apache-2.0
"""Programs of two pools on one gateway: tests/bench/neighbours. Neither tenant trusts the other."""

import os
import re

from .job import LabError

NOISES = ("many_qps", "tiny_writes", "bulk_writes", "error_storm", "doorbell_spam", "rnr_storm", "atomics_one_line",
          "read_amplification", "control_storm", "blocked_memory")
# Attackers of the isolation matrix.
ATTACKERS = (*NOISES, "changing_memory", "unread_events")
# Programs that behave: WRITEs of 4 KiB, one small WRITE at a time, READs, atomics, long WRITEs, many queue pairs.
VICTIMS = ("victim", "victim_pings", "victim_reads", "victim_atomics", "victim_bulk", "victim_many_qps")
# The noise's socket is for the user that attackers run as, too.
POOLS = """static:
  tenants: [{name: tenants/red}, {name: tenants/blue}]
  pools:
    - name: tenants/red/pools/victim
      uid: aaaaaaaa-0000-4000-8000-000000000000
      spec:
        slots: 1
        memory: {remap: DENY}
        quota:
          committed: {sessions: 8, pds: 64, cqs: 64, qps: 64, mrs: 64, ahs: 64, cm_ids: 64, registered_bytes: 67108864,
                      segment_bytes: 67108864}
    - name: tenants/blue/pools/noise
      uid: bbbbbbbb-0000-4000-8000-000000000000
      spec: {slots: 1, memory: {remap: DENY}, attach: {socket_mode: 432, socket_owner: nobody}}
"""
_FIGURES = re.compile(r"set_up_us=([\d.]+)\s+messages=(\d+) seconds=([\d.]+) p50_us=([\d.]+) p99_us=([\d.]+)")


def pool_socket(host, pool):
    """Attach socket of a pool on a host: "a" of the victim, "b" of the noise."""
    return os.path.join(host.directory, "a", pool * 8, "0", "attach.sock")


class Program:
    """A program of a pool, and its server on the other host."""

    _port = 21000

    def __init__(self, host, other, pool, kind, user=None):
        Program._port += 1
        self.port = port = str(Program._port)
        for one in (host, other):
            one.attach_socket = pool_socket(one, pool)
        self.server = other.start([other.program("neighbour"), "serve", str(other.gid_index(other.address4)), port])
        self.server.expect("serving", 30)
        self.job = host.start([host.program("neighbour"), kind, str(host.gid_index(host.address4)), port, other.address4], user)

    def end(self, number):
        """Ends both by a signal and SIGKILL. Returns the exit status of the program."""
        self.job.signal(number)
        status = self.job.wait(30)
        self.kill_server()
        return status

    def kill(self):
        self.job.signal(9)
        self.job.wait(30)
        self.kill_server()

    def kill_server(self):
        self.server.signal(9)
        self.server.wait(30)

    def figures(self):
        """(messages a second, 99th percentile in microseconds, set-up time in microseconds) of a victim that ended."""
        found = _FIGURES.search(self.job.output)
        if not found:
            raise LabError(f"the program that behaves failed:\n{self.job.output}\n{self.server.output}")
        set_up, messages, seconds, _, p99 = map(float, found.groups())
        return messages / seconds, p99, set_up
