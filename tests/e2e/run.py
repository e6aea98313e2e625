#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end suite: two hosts, each with its own gateway, joined by a veth. tests/e2e/cases.md describes the cases.

  tests/e2e/run.py                                all cases, port mode udp, one worker
  tests/e2e/run.py --port af_packet --workers 2   the same over DPDK, two workers
  tests/e2e/run.py --port af_xdp                  the same over AF_XDP
  tests/e2e/run.py --channels disabled            plain RoCEv2 between the two
  tests/e2e/run.py --case 'gateway.*' --verbose   some of them, with the daemons' logs
  tests/e2e/run.py --without 'far.*'              the others
  tests/e2e/run.py --programs all                 the program matrix: every program of ibverbs-utils, perftest and rdmacm-utils, pyverbs
  tests/e2e/run.py --programs once                what the other runs leave out of it, each program once
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from netlab.gateway_host import gateway_pair  # noqa: E402
from verbs_cases import suite  # noqa: E402
from verbs_cases.address_cases import address_cases  # noqa: E402
from verbs_cases.authentication_cases import authentication_cases  # noqa: E402
from verbs_cases.case import Pair  # noqa: E402
from verbs_cases.check_cases import check_cases  # noqa: E402
from verbs_cases.crash_cases import crash_cases  # noqa: E402
from verbs_cases.endpoint_cases import endpoint_cases  # noqa: E402
from verbs_cases.endpoint_state_cases import endpoint_state_cases  # noqa: E402
from verbs_cases.far.block_cases import far_block_cases  # noqa: E402
from verbs_cases.far.hostile_cases import far_hostile_cases  # noqa: E402
from verbs_cases.far.load_cases import far_cases  # noqa: E402
from verbs_cases.far.disk_cases import far_disk_cases  # noqa: E402
from verbs_cases.far.kept_cases import far_kept_cases  # noqa: E402
from verbs_cases.far.kept_fleet_cases import far_kept_fleet_cases  # noqa: E402
from verbs_cases.far.kept_replica_cases import far_kept_replica_cases  # noqa: E402
from verbs_cases.far.map_cases import far_map_cases  # noqa: E402
from verbs_cases.far.mount_cases import far_mount_cases  # noqa: E402
from verbs_cases.far.nbd_cases import far_nbd_cases  # noqa: E402
from verbs_cases.far.own_gateway_cases import far_own_gateway_cases  # noqa: E402
from verbs_cases.far.program_cases import far_program_cases  # noqa: E402
from verbs_cases.far.shared_pool_cases import far_shared_pool_cases  # noqa: E402
from verbs_cases.far.swap_cases import far_swap_cases  # noqa: E402
from verbs_cases.gateway_cases import gateway_cases  # noqa: E402
from verbs_cases.gpu_cases import gpu_cases  # noqa: E402
from verbs_cases.in_process_cases import in_process_cases  # noqa: E402
from verbs_cases.memory_cases import memory_cases  # noqa: E402
from verbs_cases.middleware_cases import middleware_cases  # noqa: E402
from verbs_cases.placement_cases import placement_cases  # noqa: E402
from verbs_cases.program_cases import ONCE, program_cases  # noqa: E402
from verbs_cases.pyverbs_cases import pyverbs_cases  # noqa: E402
from verbs_cases.restart_cases import restart_cases  # noqa: E402
from verbs_cases.tool_cases import multicast_cases, timestamp_cases, tool_cases  # noqa: E402
from verbs_cases.way_cases import way_cases  # noqa: E402


def make_pair(lab, arguments):
    left, right = gateway_pair(lab, arguments.binaries, arguments.port, arguments.workers,
                               settings=f"gateways: {{channels: {arguments.channels}}}\n")

    def set_link_mtu(mtu):
        # A port takes its MTU when the daemon starts.
        for host in (left, right):
            if host.daemon:
                host.stop_gateway()
            host.set_mtu(mtu)
        for host in (left, right):
            host.start_gateway()
    return Pair(lab, left, right, (left.namespace, left.interface), set_link_mtu, arguments.channels == "enabled")


def _over_kernel_sockets(cases):
    """Mounts, swap, windows and disk copies are programs upon the transfers of load_cases; those run over every kind of port."""
    return [case._replace(needs="kernel_sockets") for case in cases]


def main():
    parser = suite.parser_for(__doc__)
    parser.add_argument("--programs", choices=("once", "all"), help="the program matrix, nothing else")
    arguments = parser.parse_args()
    tools = tool_cases() + timestamp_cases() + multicast_cases()
    matrix = program_cases() + pyverbs_cases() + middleware_cases()
    others = check_cases() + tools + way_cases() + crash_cases() + restart_cases() + endpoint_cases() + endpoint_state_cases() + gateway_cases() + address_cases() \
        + in_process_cases() + memory_cases() + gpu_cases() + placement_cases() + authentication_cases() + far_cases() \
        + far_block_cases() + far_shared_pool_cases() \
        + _over_kernel_sockets(far_hostile_cases() + far_mount_cases() + far_kept_cases() + far_kept_fleet_cases() + far_kept_replica_cases() + far_swap_cases() + far_map_cases() + far_disk_cases()
                               + far_nbd_cases() + far_program_cases() + far_own_gateway_cases())
    if not arguments.case:
        chosen = {"once": ONCE + ["pyverbs.*"], "all": ["gateway.devinfo", *(case.id for case in tools + matrix)]}
        arguments.case = chosen.get(arguments.programs, [case.id for case in others])
    return suite.main(arguments, others + matrix, os.path.join(HERE, "cases.md"), make_pair)


if __name__ == "__main__":
    sys.exit(main())
