# SPDX-License-Identifier: Apache-2.0
"""Cases of swap in remote memory (rocegw-memory swap): an unmodified program in a cgroup that holds half of its memory."""

import contextlib
import os
import signal
import subprocess
import sys

from netlab.daemon import start_daemon
from netlab.gateway_host import http_get

from ..case import Case, expect
from .load_cases import MIB, far_donors

_CGROUP = "/sys/fs/cgroup/memory/rocegw-far-swap"
# Fills memory with numbers that say where they belong, and compares pages in a random order.
_PROGRAM = """
import mmap, random, sys, time
megabytes, reads = int(sys.argv[1]), int(sys.argv[2])
pages = megabytes * 256
memory = mmap.mmap(-1, pages * 4096)
def page(number, version): return (number * 1000003 + version).to_bytes(8, "little") * 512
for number in range(pages): memory[number * 4096:(number + 1) * 4096] = page(number, 0)
chance, versions = random.Random(1), [0] * pages
print("filled", flush=True)
begin = time.monotonic()
for step in range(reads):
    number = chance.randrange(pages)
    if memory[number * 4096:(number + 1) * 4096] != page(number, versions[number]): sys.exit(f"page {number} is wrong")
    if step % 4 == 0:
        versions[number] += 1
        memory[number * 4096:(number + 1) * 4096] = page(number, versions[number])
for number in range(pages):
    if memory[number * 4096:(number + 1) * 4096] != page(number, versions[number]): sys.exit(f"page {number} is wrong")
print("right", reads, "accesses in", time.monotonic() - begin, flush=True)
"""


class FarSwap:
    """rocegw-memory swap on a host."""

    def __init__(self, host, donors, mebibytes, options=()):
        self.host = host
        self._port = 7578
        words = [*host.launcher, host.program("rocegw-memory"), "swap", "--size", f"{mebibytes}MiB", "--slab", "1MiB", "--metrics",
                 f"127.0.0.1:{self._port}", "--priority", "100", "--directory", os.path.join(host.directory, "swap"),
                 *map(str, options)]
        for donor in donors:
            words += ["--donor", f"{donor.host.address4}:{donor.port}"]
        self.job = start_daemon(host.lab, ["env", f"ROCEGW_SOCKET={host.attach_socket}", *words], host.directory,
                                f"swap of {host.name}", host.namespace)
        self.device = self.job.expect(r"/dev/loop\d+", 10).group(0)

    def metrics(self):
        page = http_get(self.host.namespace, self._port, "/metrics")
        return {name: float(value) for name, value in
                (line.split() for line in page.splitlines() if line.startswith("rocegw_memory_"))}


def _swaps():
    with open("/proc/swaps", encoding="ascii") as file:
        return file.read()


@contextlib.contextmanager
def far_swap(host, donors, mebibytes, options=()):
    swap = FarSwap(host, donors, mebibytes, options)
    try:
        expect(swap.device in _swaps(), "the kernel does not know the swap")
        yield swap
    finally:
        status = swap.job.stop(60)
    expect(status == 0, f"swap ended with {status}:\n{swap.job.output}")
    expect(swap.device not in _swaps(), "the kernel still knows the swap")


@contextlib.contextmanager
def limited(mebibytes):
    """A cgroup with so much memory; yields what a new process calls to enter it."""
    os.makedirs(_CGROUP, exist_ok=True)
    with open(f"{_CGROUP}/memory.limit_in_bytes", "w", encoding="ascii") as file:
        file.write(str(mebibytes * MIB))

    def enter():
        with open(f"{_CGROUP}/cgroup.procs", "w", encoding="ascii") as procs:
            procs.write(str(os.getpid()))
    try:
        yield enter
    finally:
        os.rmdir(_CGROUP)


@contextlib.contextmanager
def _limited_program(mebibytes, limit, accesses):
    """The program in a cgroup, which it enters before it is loaded; ended at the end."""
    with limited(limit) as enter:
        program = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(mebibytes), str(accesses)], preexec_fn=enter,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            yield program
        finally:
            program.send_signal(signal.SIGKILL)
            program.wait(30)
            program.stdout.close()


def _expect_right(program):
    output, _ = program.communicate(timeout=240)
    expect(program.returncode == 0 and "right" in output, f"the program ended with {program.returncode}: {output}")
    return output.splitlines()[-1]


def _half_memory(pair):
    with far_donors(pair.right, 2, mebibytes=128) as donors, far_swap(pair.left, donors, 96) as swap:
        with _limited_program(64, 32, 4000) as program:
            said = _expect_right(program)
        metrics = swap.metrics()
        expect(metrics["rocegw_memory_files_read_bytes_total"] > 16 * MIB
               and metrics["rocegw_memory_files_written_bytes_total"] > 16 * MIB, f"nothing was swapped: {metrics}")
        expect(metrics["rocegw_memory_files_failed_total"] == 0, f"requests failed: {metrics}")
    return f"{said}; {metrics['rocegw_memory_files_reads_total']:.0f} reads"


def _donor_killed(pair):
    """A donor dies while the program swaps, and the program does not notice."""
    with far_donors(pair.right, 3, mebibytes=128) as donors:
        with far_swap(pair.left, donors, 96, ["--replicas", 2, "--timeout", 3000]) as swap:
            with _limited_program(64, 32, 4000) as program:
                expect("filled" in program.stdout.readline(), "the program did not start")
                donors[0].kill()
                said = _expect_right(program)
            metrics = swap.metrics()
            expect(metrics["rocegw_memory_session_donors_lost_total"] == 1, f"no donor was lost: {metrics}")
            expect(metrics["rocegw_memory_files_failed_total"] == 0, f"requests failed: {metrics}")
    return said


def far_swap_cases():
    return [Case("far.swap.half_memory", 4200, _half_memory), Case("far.swap.donor_killed", 4200, _donor_killed)]
