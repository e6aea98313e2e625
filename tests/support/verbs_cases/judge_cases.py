# SPDX-License-Identifier: Apache-2.0
"""Cases that record the link and let tshark and scapy judge the frames, both written by others."""

import os
import subprocess

from netlab.job import run

from .case import Case, expect
from .check_cases import rdma_check

# Guesses about what a random payload might be; their failures say nothing about the frame.
_GUESSES = ("smc", "smb_direct", "rpcordma", "nvme-rdma", "lnet", "iser", "infiniband.eoib", "infiniband_sdp", "fcoib")
_CHECKS = "transfer.*.scatter*,transfer.*.inline*,transfer.fence*,atomic.*,fault.*,datagram.*,connect.*"
# How many frames scapy computes; about a millisecond each.
_MOST_ICRCS = 4000

_SCAPY = """
import sys
from scapy.utils import RawPcapReader
from scapy.layers.l2 import Ether
from scapy.layers.inet import IP, UDP
from scapy.contrib.roce import BTH
good = wrong = 0
for raw, _ in RawPcapReader(sys.argv[1]):
    frame = Ether(raw)
    if BTH not in frame or IP not in frame:
        continue
    end = 14 + frame[IP].len
    icrc = frame[BTH].compute_icrc(raw[42:end - 4])
    if icrc == raw[end - 4:end]:
        good += 1
    else:
        wrong += 1
        if wrong < 5:
            print(frame.summary(), 'has ICRC', raw[end - 4:end].hex(), 'must be', icrc.hex())
    if good + wrong == int(sys.argv[2]):
        break
print(good, 'good', wrong, 'wrong')
"""


def _tshark(path, *arguments):
    command = ["tshark", "-r", path]
    for guess in _GUESSES:
        command += ["--disable-protocol", guess]
    # What tshark says about running as root goes to stderr.
    done = subprocess.run(command + list(arguments), check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=120)
    return done.stdout.splitlines()


def judge(path, source4, source6):
    """What the two say about the frames of one sender."""
    ours = f"(ip.src == {source4} or ipv6.src == {source6}) and infiniband"
    frames = len(_tshark(path, "-Y", ours))
    expect(frames > 0, "nothing to judge was recorded")
    malformed = _tshark(path, "-Y", f"{ours} and _ws.malformed")
    expect(not malformed, f"tshark finds {len(malformed)} of {frames} frames malformed:\n" + "\n".join(malformed[:5]))
    # A link that segments or computes checksums later shows them undone, so UDP checksums are not asked about here.
    filtered = path + ".ours"
    subprocess.run(["tcpdump", "-r", path, "-w", filtered, f"src host {source4} and udp port 4791"], check=True,
                   stderr=subprocess.DEVNULL)
    verdict = run(["/usr/bin/python3", "-c", _SCAPY, filtered, str(_MOST_ICRCS)], timeout=120).strip()
    os.unlink(filtered)
    words = verdict.splitlines()[-1].split()
    expect(words[2] == "0", f"scapy computes other ICRCs:\n{verdict}")
    return frames, int(words[0])


def _judged(connect):
    def run_case(pair):
        with pair.recorded() as path:
            for left_is_active in (True, False):
                rdma_check(pair, left_is_active, connect, cases=_CHECKS, mtu=1024)
        frames, icrcs = judge(path, pair.left.address4, pair.left.address6)
        expect(icrcs > 0, "no frame over IPv4 was recorded")
        return f"{frames} frames dissected, {icrcs} ICRCs equal"
    return Case(f"judge.{connect}", 1500, run_case)


def judge_cases():
    return [_judged("cm"), _judged("socket")]
