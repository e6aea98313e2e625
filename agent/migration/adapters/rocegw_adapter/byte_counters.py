# SPDX-License-Identifier: Apache-2.0
"""Bytes that a host moved over RoCE, as its NICs or its gateway count them: the second witness of a migration."""

import glob
import os

from .protocol import LONGEST_OUTPUT, inconclusive

INFINIBAND = os.environ.get("ROCEGW_INFINIBAND", "/sys/class/infiniband")
# soft-RoCE counts packets, not bytes. Most of a transfer's packets are longer than this.
PACKET_BYTES = 1024


def rnic_bytes():
    """Sum over all ports of this host: the counters of InfiniBand's standard, in units of four bytes, or packets."""
    total = 0
    for port in glob.glob(os.path.join(INFINIBAND, "*", "ports", "*")):
        for names, unit in ((("counters/port_xmit_data", "counters/port_rcv_data"), 4),
                            (("hw_counters/sent_pkts", "hw_counters/rcvd_pkts"), PACKET_BYTES)):
            files = [os.path.join(port, name) for name in names]
            if all(map(os.path.exists, files)):
                for name in files:
                    with open(name, encoding="ascii") as file:
                        total += int(file.read()) * unit
                break
    return total


def roce_bytes(call):
    """Bytes of the host's gateway or of its NICs, whichever the node is expected to use now. Where that is TCP: of what it used
    or will use instead of TCP."""
    expected, other = call.expected_and_other()
    if "gateway" == (expected if expected != "tcp" else other):
        return gateway_bytes(call.cluster.text.get("metrics", "http://127.0.0.1:7474/metrics"))
    return rnic_bytes()


def gateway_bytes(address):
    import urllib.request  # takes longer than all other modules, and most calls do without
    with urllib.request.urlopen(address, timeout=10) as page:
        text = page.read(LONGEST_OUTPUT + 1)
    if len(text) > LONGEST_OUTPUT:
        raise inconclusive(f"the gateway's metrics are longer than {LONGEST_OUTPUT} bytes")
    return sum(int(float(line.split()[-1])) for line in text.decode().splitlines()
               if line.startswith(("rocegw_tx_bytes_total", "rocegw_rx_bytes_total")))
