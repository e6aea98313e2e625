# SPDX-License-Identifier: Apache-2.0
"""Registered memory that few hosts can spare: huge pages, messages of 2 GiB, memory of a GPU (a fake one), and remapped
memory with a copy engine (DPDK's skeleton of one)."""

import contextlib
import json
import os
import signal

from netlab.fleet import eventually
from netlab.huge_pages import free_huge_pages

from .case import Case, expect
from .check_cases import rdma_check
from .in_process_cases import in_process

# Up to 1 MiB by every verb, with flags behind data: bursts that an engine helps with, and others.
_ENGINE_CASES = "transfer.*"


def _huge_pages(pair):
    ran = []
    with free_huge_pages(2):
        for connect in ("cm", "socket"):
            with pair.counted(at_least=2):
                ran += rdma_check(pair, True, connect, cases="large.huge_pages*,large.zero_based*")
    return f"{len(ran)} rdma_check cases"


def _longest(pair):
    with pair.counted(at_least=2):
        rdma_check(pair, True, "cm", cases="large.longest/client")
    return "3 messages of 2 GiB"


@contextlib.contextmanager
def _fake_cuda(pair):
    """Gateways and programs find a fake libcuda.so.1 (tests/support/fake_cuda) meanwhile."""
    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = os.path.join(pair.left.binaries, "..", "lib", "fake_cuda")
    try:
        for host in (pair.left, pair.right):
            host.stop_gateway()
            host.start_gateway()
        yield
    finally:
        if before is None:
            del os.environ["LD_LIBRARY_PATH"]
        else:
            os.environ["LD_LIBRARY_PATH"] = before
        for host in (pair.left, pair.right):
            host.stop_gateway()
            host.start_gateway()


def on_device(pair, connect, kind="device"):
    """A process for each direction: a program loads its driver's library before it uses verbs."""
    return [name for side in ("client", "server") for name in rdma_check(pair, True, connect, cases=f"large.{kind}/{side}")]


def _device(pair):
    ran = []
    with _fake_cuda(pair):
        for connect in ("cm", "socket"):
            with pair.counted(at_least=2):
                ran += on_device(pair, connect)
        for kind in ("device_shared", "device_hip", "device_freed"):
            ran += on_device(pair, "cm", kind)
        moved = [host.counters()["rocegw_memory_device_bytes_total"] for host in (pair.left, pair.right)]
    expect(all(moved), f"bytes moved by copies of devices: {moved}")
    return f"{len(ran)} rdma_check cases"


def _device_in_process(pair):
    """The gateway is in the programs, whose own contexts it uses."""
    ran = []
    with _fake_cuda(pair), in_process(pair.left, pair.right):
        for kind in ("device", "device_shared", "device_hip", "device_freed"):
            ran += on_device(pair, "cm", kind)
    return f"{len(ran)} rdma_check cases"


_KV = ["--layers", "4", "--tokens", "64"]


def _decoder(pair, kind, port, size):
    words = ["decode", "--address", pair.right.address4, "--port", str(port), "--memory", kind, *size]
    decoder = pair.right.start([pair.right.program("example_kv_transfer"), *words])
    decoder.expect("ready", 30)
    return decoder


def _prefill(pair, kind, port, size, requests):
    words = ["prefill", "--address", pair.right.address4, "--port", str(port), "--memory", kind, "--requests", str(requests)]
    return pair.left.start([pair.left.program("example_kv_transfer"), *words, *size])


def kv_transfer(pair, left, right, size, requests=5, timeout=60):
    """Writes a KV cache from the left host's memory of a kind to the right one's. Returns the sender's line of JSON."""
    port = pair.right.fresh_port()
    decoder = _decoder(pair, right, port, size)
    sender = _prefill(pair, left, port, size, requests)
    ended = sender.wait(timeout), decoder.wait(timeout)
    expect(ended == (0, 0), f"{left} to {right}: {ended}\n{sender.output}{decoder.output}")
    return sender.output.splitlines()[-1]


def _kv_killed(pair):
    """The decoder dies in the middle: the other end's request fails, and nothing of either stays."""
    port = pair.right.fresh_port()
    decoder = _decoder(pair, "cuda", port, _KV)
    sender = _prefill(pair, "cuda", port, _KV, 100000)
    before = pair.right.counters()["rocegw_memory_device_bytes_total"]
    eventually("requests of the second program", lambda: pair.right.counters()["rocegw_memory_device_bytes_total"] > before + (4 << 20))
    decoder.signal(signal.SIGKILL)
    expect(sender.wait(60) == 1, f"the other end did not notice: {sender.output}")
    decoder.wait(10)
    for host in (pair.left, pair.right):
        host.expect_idle()


def _kv_transfer(pair):
    notes = []
    with _fake_cuda(pair):
        for left, right in (("cuda", "cuda"), ("cuda-shared", "hip"), ("host", "cuda")):
            report = json.loads(kv_transfer(pair, left, right, _KV))
            expect(report["requests"] == 5 and report["request_bytes"] == 4 * 64 * 4096, report)
            notes.append(f"{left} to {right} {report['average_ms']} ms")
        _kv_killed(pair)
    return "; ".join(notes)


@contextlib.contextmanager
def _copy_engine(pair):
    """Gateways copy by DPDK's skeleton engine meanwhile, which is a thread. True: they can be taken over."""
    hosts = (pair.left, pair.right)
    texts = []
    for host in hosts:
        with open(host.config, encoding="utf-8") as file:
            texts.append(file.read())
        with open(host.config, "a", encoding="utf-8") as file:
            file.write("copy_engine: {mode: on, devices: [dma_skeleton], minimum_bytes: 1024}\n")
        host.stop_gateway()
        host.start_gateway()
    try:
        yield "mode: udp" in texts[0]
    finally:
        for host, text in zip(hosts, texts):
            with open(host.config, "w", encoding="utf-8") as file:
                file.write(text)
            host.stop_gateway()
            host.start_gateway()


def _by_engine(pair):
    with _copy_engine(pair) as kernel_sockets:
        with pair.counted(at_least=2):
            ran = rdma_check(pair, True, "cm", cases=_ENGINE_CASES, mtu=4096, remap="always")
        if kernel_sockets:
            pair.left.take_over()
        with pair.counted(at_least=2):
            ran += rdma_check(pair, False, "socket", cases=_ENGINE_CASES, mtu=4096, remap="always")
        counts = [host.counters() for host in (pair.left, pair.right)]
    copied = [count["rocegw_memory_engine_bytes_total"] for count in counts]
    expect(all(copied), f"bytes written by copy engines: {copied}")
    failed = [count["rocegw_memory_engine_failed_operations_total"] for count in counts]
    expect(not any(failed), f"copies that failed: {failed}")
    return f"{len(ran)} rdma_check cases"


@contextlib.contextmanager
def _noise(pair):
    """A program on the left writes to one on the right from memory that it changes meanwhile."""
    server = pair.right.start([pair.right.program("neighbour"), "serve", str(pair.right.gid_index(pair.right.address4)), "21100"])
    try:
        server.expect("serving", 20)
        noise = pair.left.start(["env", "ROCEGW_REMAP=always", pair.left.program("neighbour"), "changing_memory",
                                 str(pair.left.gid_index(pair.left.address4)), "21100", pair.right.address4])
        try:
            yield
            expect(noise.running, f"the program is gone:\n{noise.output}")
        finally:
            noise.stop()
    finally:
        server.stop()


def _changing(pair):
    before = pair.left.counters()["rocegw_memory_reference_bytes_total"]
    with _noise(pair):
        ran = rdma_check(pair, True, "cm", cases=_ENGINE_CASES, mtu=4096, remap="always")
        ran += rdma_check(pair, False, "socket", cases=_ENGINE_CASES, mtu=4096, remap="always")
    with open(pair.left.config, encoding="utf-8") as file:
        kernel_sockets = "mode: udp" in file.read()
    if kernel_sockets:
        expect(pair.left.counters()["rocegw_memory_reference_bytes_total"] > before, "nothing left without a copy")
    return f"{len(ran)} rdma_check cases"


def memory_cases():
    return [Case("memory.changing", 4200, _changing),
            Case("memory.copy_engine", 4200, _by_engine), Case("memory.device", 4200, _device),
            Case("memory.device_in_process", 4200, _device_in_process, needs="in_process"), Case("memory.kv_transfer", 4200, _kv_transfer),
            Case("memory.huge_pages", 4200, _huge_pages), Case("memory.longest", 4200, _longest)]
