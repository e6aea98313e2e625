# SPDX-License-Identifier: Apache-2.0
"""Ways for programs to come to the gateway besides a preloaded library: the drop-in pair, libraries that are opened by hand,
programs that have little of the machine around them."""

import contextlib
import os
import shutil

from netlab.job import run

from .case import Case, expect
from .check_cases import rdma_check
from .gateway_cases import memory_grown
from .tool_cases import perftest, rping


@contextlib.contextmanager
def started_by(pair, *words):
    """Programs are started by these words before their own; host: for the host's own."""
    usual = [host.launcher for host in (pair.left, pair.right)]
    for host in (pair.left, pair.right):
        host.launcher = [word(host) if callable(word) else word for word in words]
    try:
        yield
    finally:
        for host, launcher in zip((pair.left, pair.right), usual):
            host.launcher = launcher


def _rocegw_run(host):
    return host.program("rocegw-run")


def _drop_in(pair):
    """Data of every kind, through a pair of libraries that is found by name."""
    with started_by(pair, _rocegw_run, "--drop-in", "--"):
        shown = pair.left.run(["sh", "-c", "echo $LD_LIBRARY_PATH:$LD_PRELOAD; ldd $(command -v rping)"])
        expect("/rocegw-drop-in:" in shown and "/rocegw-drop-in/librdmacm.so.1" in shown, f"not the drop-in pair:\n{shown}")
        before = pair.left.counters()
        with pair.counted(at_least=100):
            # Nobody watches what the program does with its memory: it must stay where it is, whatever is asked for.
            ran = rdma_check(pair, False, "cm", cases="transfer.*,connect.*", wait="event", remap="always")
            results = [perftest(pair, True, "ib_write_bw", "cm"), perftest(pair, True, "ib_read_lat", "socket", 1024)]
            rping(pair, True, 4)
        grown = memory_grown(pair.left, before)
        expect(grown["cross"] > 0 and grown["direct"] == 0, f"memory was reached in these ways: {grown}")
    return f"{len(ran)} rdma_check cases, rping; " + "; ".join(results)


def _opened_by_hand(pair):
    """Programs that open libibverbs themselves, as MPI, UCX and NCCL do, find the gateway's device."""
    program, plugin = pair.left.program("dlopen_verbs"), pair.left.program("verbs_plugin.so")
    drop_in = os.path.join(pair.left.binaries, "..", "lib", "rocegw-drop-in", "libibverbs.so.1")
    names = ("libibverbs.so.1", "libibverbs.so")
    ways = [(how, way, name) for how in ((), ("--drop-in",)) for way in ("symbol", "version") for name in names]
    ways += [(("--drop-in",), "plugin", plugin), ((), "symbol", drop_in), (("--drop-in",), "version", drop_in)]
    for how, way, name in ways:
        with started_by(pair, _rocegw_run, *how, "--"):
            text = pair.left.run([program, way, name])
        expect(text.split() == [pair.left.device, "ok"], f"{how} {way} {name}:\n{text}")
    # By path and with nothing in the environment but the gateway's socket.
    with started_by(pair):
        text = pair.left.run([program, "symbol", drop_in])
    expect(text.split() == [pair.left.device, "ok"], f"by path alone:\n{text}")
    return f"{len(ways) + 1} ways"


def _bare_root(host, programs):
    """A root directory with these programs and the libraries that they need of the machine, nothing else."""
    root = host.lab.path(f"root-{host.name}")
    files = set()
    for program in programs:
        path = shutil.which(program) or program
        files.add(path)
        files.update(word for word in run(["ldd", path]).split() if word.startswith("/"))
    for file in files:
        os.makedirs(root + os.path.dirname(file), exist_ok=True)
        shutil.copy(file, root + file)
    # Where the gateway's libraries and socket come to be.
    for folder in ("opt/rocegw", "run/rocegw"):
        os.makedirs(os.path.join(root, folder))
    return root


def _alone(identifier, own_network, way):
    """Programs that have their own files around them and of the machine two folders: that of the gateway's socket and that of
    the libraries. No /proc, /sys, /dev; with own_network no network interface either."""
    def run_case(pair):
        program = pair.left.program("rdma_check")
        roots = {host: _bare_root(host, ["rping", program]) for host in (pair.left, pair.right)}
        build = os.path.abspath(os.path.join(pair.left.binaries, ".."))

        def enter(host):
            return (f"mount --bind {build} {roots[host]}/opt/rocegw && "
                    f"mount --bind {os.path.dirname(host.attach_socket)} {roots[host]}/run/rocegw && "
                    f"exec chroot {roots[host]} /opt/rocegw/bin/rocegw-run --socket /run/rocegw/attach.sock {way} \"$@\"")
        ran = []
        try:
            # A namespace of mounts, so that they end with the program.
            networks = ["--net"] if own_network else []
            with started_by(pair, "unshare", "--mount", *networks, "sh", "-ec", enter, "sh"):
                with pair.counted(at_least=40):
                    rping(pair, True, 4)
                    rping(pair, False, 6)
                    if not own_network:  # rdma_check's two sides talk over TCP besides
                        ran = rdma_check(pair, True, "cm", cases="transfer.*,atomic.*,connect.*")
        finally:
            for root in roots.values():
                shutil.rmtree(root)
        for host in (pair.left, pair.right):
            host.expect_idle()
        return f"rping; {len(ran)} rdma_check cases"
    return Case(identifier, 1500, run_case)


def way_cases():
    cases = [Case("ways.drop_in", 4200, _drop_in), Case("ways.opened_by_hand", 4200, _opened_by_hand)]
    for name, own_network in (("chroot", False), ("network_namespace", True)):
        cases += [_alone(f"ways.{name}.preload", own_network, "--"), _alone(f"ways.{name}.drop_in", own_network, "--drop-in --")]
    return cases
