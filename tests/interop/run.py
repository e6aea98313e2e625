#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Interop suite: a gateway against Linux's soft-RoCE in a QEMU guest. tests/interop/cases.md describes the cases.

  tests/interop/run.py                                all cases, port mode udp, one worker
  tests/interop/run.py --port af_packet --workers 2   the same over DPDK, two workers
  tests/interop/run.py --case 'rping.*' --verbose     some of them, with the daemon's log
  tests/interop/run.py --case 'far.*'                 remote memory, which the other runs leave out
  tests/interop/run.py --left rxe                     soft-RoCE against itself: judges the harness, not the gateway
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))

from netlab.gateway_host import GatewayHost  # noqa: E402
from netlab.rxe_guest import RxeGuest, prepare_image  # noqa: E402
from verbs_cases import suite  # noqa: E402
from verbs_cases.case import Pair  # noqa: E402
from verbs_cases.check_cases import check_cases  # noqa: E402
from verbs_cases.coexist_cases import coexist_cases  # noqa: E402
from verbs_cases.crash_cases import crash_cases  # noqa: E402
from verbs_cases.dma_buf_cases import dma_buf_cases  # noqa: E402
from verbs_cases.far.peer_cases import far_peer_cases  # noqa: E402
from verbs_cases.gateway_cases import gateway_cases  # noqa: E402
from verbs_cases.in_process_cases import in_process_peer_cases  # noqa: E402
from verbs_cases.judge_cases import judge_cases  # noqa: E402
from verbs_cases.program_cases import peer_program_cases  # noqa: E402
from verbs_cases.tool_cases import tool_cases  # noqa: E402

LEFT = ("10.77.0.1", "fd77::1")
RIGHT = ("10.77.0.2", "fd77::2")
LINK_MTU = 4200


def gateway_pair(lab, arguments, image):
    """Gateway and guest on the two ends of one tap device."""
    namespace = lab.namespace("gateway")
    lab.tap(namespace, "link0", LINK_MTU)
    lab.address(namespace, "link0", f"{LEFT[0]}/24", f"{LEFT[1]}/64")
    guest = RxeGuest(lab, "rxe", namespace, "link0", RIGHT, image, LINK_MTU, neighbour=LEFT[0])
    gateway = GatewayHost(lab, "gateway", namespace, "link0", LEFT, arguments.binaries, arguments.port,
                          arguments.workers)
    guest.wait_ready()

    def set_link_mtu(mtu):
        # A port takes its MTU when the daemon starts.
        if gateway.daemon:
            gateway.stop_gateway()
        gateway.set_mtu(mtu)
        guest.set_mtu(mtu)
        gateway.start_gateway()
    return Pair(lab, gateway, guest, (namespace, "link0"), set_link_mtu)


def rxe_pair(lab, image):
    """Two guests on a bridge."""
    namespace = lab.namespace("bridge")
    for tap in ("tap0", "tap1"):
        lab.tap(namespace, tap, LINK_MTU)
    lab.bridge(namespace, "link0", ("tap0", "tap1"), LINK_MTU)
    left = RxeGuest(lab, "left", namespace, "tap0", LEFT, image, LINK_MTU)
    right = RxeGuest(lab, "right", namespace, "tap1", RIGHT, image, LINK_MTU)
    for guest in (left, right):
        guest.wait_ready()

    def set_link_mtu(mtu):
        for guest in (left, right):
            guest.set_mtu(mtu)
    return Pair(lab, left, right, (namespace, "link0"), set_link_mtu)


def make_pair(lab, arguments):
    image = prepare_image(lab, os.path.join(arguments.binaries, "..", "guest"),
                          os.path.join(arguments.binaries, "guest_agent"),
                          [os.path.join(arguments.binaries, program) for program in
                           ("rdma_check", "cm_misuse", "rocegwd", "dma_buf_check", "rocegw-memory", "far_load", "far_program", os.path.join("..", "lib", "librocegw-verbs.so"))],
                          ["--module", "nbd"])
    return rxe_pair(lab, image) if arguments.left == "rxe" else gateway_pair(lab, arguments, image)


def main():
    parser = suite.parser_for(__doc__)
    parser.add_argument("--left", choices=("gateway", "rxe"), default="gateway", help="the host under test")
    arguments = parser.parse_args()
    cases = check_cases() + tool_cases() + peer_program_cases() + crash_cases() + judge_cases() + gateway_cases() \
        + in_process_peer_cases() + coexist_cases() + dma_buf_cases()
    if not arguments.case:
        # Remote memory is a program like others: one run of its own is enough.
        arguments.case = [case.id for case in cases]
    cases += far_peer_cases()
    return suite.main(arguments, cases, os.path.join(HERE, "cases.md"), make_pair, arguments.left == "gateway")


if __name__ == "__main__":
    sys.exit(main())
