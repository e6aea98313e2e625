#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the frame fuzz target into the folder given: real frames of every kind."""
import pathlib
import sys

SEEDS = {
    # Recorded from a ConnectX-4 Lx (scapy's regression tests).
    "cnp": "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000"
           "0118000000000000000000000000000000000000000082fd002a",
    "uc_send": "248a07a8fa22248a07a8fa22080045010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460ffff00"
               "0000d300cf17104630818be28935d90e9a95505401be885e50000078f353f3",
    "ipv6_write": "02000000000202000000000186dd66a123450030114020010db800000000000000000000000120010db80000000000"
                  "00000000000002e34112b70030beb50a40ffff000000118000000100007f00112233440001234500000008526f4345"
                  "7632212125862bd5",
    "arp_request": "ffffffffffff0242c0000209080600010800060400010242c0000209c0000209000000000000c0000201",
    "arp_reply": "0242c00002090242c0000201080600010800060400020242c0000201c00002010242c0000209c0000209",
    "vlan_cnp": "e41d2dab2bc27cfe90643b3281000007080045c2003c718c4000401191610a0011010a001201000012b700280000"
                "8100ffff40000118000000000000000000000000000000000000000082fd002a",
    "fragment": "e41d2dab2bc27cfe90643b32080045c2003c718c2000401191610a0011010a001201000012b7002800008100ffff",
    "empty": "",
}


def solicitation():
    """A complete neighbour solicitation, with its checksum."""
    source = bytes.fromhex("fd090000000000000000000000000001")
    target = bytes.fromhex("fd090000000000000000000000000002")
    group = bytes.fromhex("ff0200000000000000000001ff000002")
    icmp = bytes([135, 0, 0, 0, 0, 0, 0, 0]) + target + bytes([1, 1]) + bytes.fromhex("020900000001")
    pseudo = source + group + len(icmp).to_bytes(4, "big") + bytes([0, 0, 0, 58]) + icmp
    total = sum(int.from_bytes(pseudo[i:i + 2], "big") for i in range(0, len(pseudo), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    icmp = icmp[:2] + (~total & 0xFFFF).to_bytes(2, "big") + icmp[4:]
    ip = bytes([0x60, 0, 0, 0]) + len(icmp).to_bytes(2, "big") + bytes([58, 255]) + source + group
    return bytes.fromhex("3333ff00000202090000000186dd") + ip + icmp


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in SEEDS.items():
        (folder / name).write_bytes(bytes.fromhex(text))
    (folder / "solicitation").write_bytes(solicitation())


main()
