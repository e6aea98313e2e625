#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What can happen to a host under its gateway: harsh_host BINARIES [PART ...]. Needs root. Each part ends with programs that exchange data.
  disk       the file system of the runtime directory is full while the gateway runs, and when it starts
  interface  the interface of a port is deleted and made anew
  namespace  the name of the gateway's network namespace is deleted
  restart    the gateway is killed under hundreds of programs, all of which attach to the next one at once
  unanswered the gateway is killed while a program has passed files of a file system that answers nothing
  unread     the gateway is killed while such files are in messages that it has not read
  stopped    the gateway is stopped for longer than its watchdog waits
  clock      the gateway's wall clock steps by years"""

import glob
import os
import signal
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))

from netlab.fuse_connections import end_file_systems  # noqa: E402
from netlab.gateway_host import gateway_pair, http_get  # noqa: E402
from netlab.job import LabError, run  # noqa: E402
from netlab.lab import Lab  # noqa: E402

_METRICS_PORT = 7474
_PORT = 18600
_PROGRAMS = 300
_ATTACH_S = 5
_NOBODY = 65534
_STOPPED_S = 12  # the watchdog waits ten seconds
_YEAR_S = 365 * 86400


def _expect(holds, what):
    if not holds:
        raise LabError(what)


def _exchange(left, right):
    """ibv_rc_pingpong between both, with compared data."""
    def command(host):
        return ["ibv_rc_pingpong", "-d", host.device, "-g", str(host.gid_index(host.address4)), "-p", str(_PORT), "-n", "100", "-c"]
    server = right.start(command(right))
    right.wait_listening(_PORT, server)
    client = left.start([*command(left), right.address4])
    for job in (client, server):
        _expect(job.wait(60) == 0 and "100 iters in" in job.output, f"ibv_rc_pingpong:\n{job.output}")


def _await_gids(*hosts):
    deadline = time.monotonic() + 30
    for host in hosts:
        host.forget_gids()
        while not any(host.address4 in gid for _, gid in host.gids()):
            _expect(time.monotonic() < deadline, f"{host.name} has no GID of {host.address4} after 30 s")
            time.sleep(0.2)
            host.forget_gids()


def _well(host):
    _expect(http_get(host.namespace, _METRICS_PORT, "/livez").strip() == "ok", f"/livez of {host.name}")


def _fill(directory):
    """Takes all room of the file system; the file that holds it."""
    path = os.path.join(directory, "filler")
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return path


def _disk(lab, left):
    """The runtime directory gets a file system of its own, with the configuration in it."""
    with open(left.config, encoding="utf-8") as file:
        config = file.read()
    run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0755", "rocegw-test", left.directory])
    lab.on_close(lambda: run(["umount", "--lazy", left.directory], check=False))
    with open(left.config, "w", encoding="utf-8") as file:
        file.write(config)


def _full_disk(lab, left, right):
    _disk(lab, left)
    for host in (left, right):
        host.start_gateway()
    filler = _fill(left.directory)
    _exchange(left, right)
    _well(left)
    lines = left.log().count("\n")
    _expect(lines < 50, f"{lines} lines in the log:\n{left.log()[-2000:]}")
    _expect(left.stop_gateway() == 0, "stop on a full disk")
    left.start_gateway()
    _exchange(left, right)
    _well(left)
    os.unlink(filler)
    _exchange(left, right)


def _interface(lab, left, right):
    for host in (left, right):
        host.start_gateway()
    _exchange(left, right)
    run(["ip", "link", "delete", left.interface], namespace=left.namespace)
    time.sleep(1)
    for host in (left, right):
        _well(host)
    lab.veth(left.namespace, left.interface, right.namespace, right.interface, 4200)
    for host in (left, right):
        lab.address(host.namespace, host.interface, f"{host.address4}/24", f"{host.address6}/64")
    _await_gids(left, right)
    _exchange(left, right)


def _namespace(_, left, right):
    for host in (left, right):
        host.start_gateway()
    run(["ip", "netns", "delete", left.namespace])
    # The namespace lives as long as the daemon in it; this gives it a name again.
    run(["ip", "netns", "attach", left.namespace, str(left.daemon.pid)])
    _well(left)
    _exchange(left, right)


def _restart(_, left, right):
    for host in (left, right):
        host.start_gateway()
    programs = left.start([left.program("many_sessions"), str(_PROGRAMS)])
    programs.expect("^open$", 120)
    left.daemon.signal(signal.SIGKILL)
    left.daemon.wait(30)
    left.start_gateway()
    began = time.monotonic()
    _exchange(left, right)
    took = time.monotonic() - began
    _expect(took < _ATTACH_S, f"beside {_PROGRAMS} programs that attach at once, two others took {took:.1f} s")
    programs.expect("^open again$", 120)
    _expect(programs.wait(60) == 0, programs.output[-2000:])
    left.expect_idle()


def _receivers(host):
    """Number of the processes that receive descriptors for the host's gateways."""
    namespace = os.stat(f"/run/netns/{host.namespace}").st_ino
    count = 0
    for process in glob.glob("/proc/[0-9]*"):
        try:
            with open(os.path.join(process, "comm"), encoding="ascii") as file:
                count += file.read() == "rocegw-receive\n" and os.stat(os.path.join(process, "ns", "net")).st_ino == namespace
        except OSError:
            pass
    return count


def _unanswered(_, left, right):
    for host in (left, right):
        host.start_gateway()
    before = _receivers(left)
    program = left.start([left.program("hostile"), "unanswered_file", left.attach_socket], user=_NOBODY)
    deadline = time.monotonic() + 20
    while _receivers(left) < before + 5:
        _expect(program.running and time.monotonic() < deadline, f"files were not passed:\n{program.output}")
        time.sleep(0.1)
    _exchange(left, right)
    left.daemon.signal(signal.SIGKILL)
    left.daemon.wait(30)
    began = time.monotonic()
    left.start_gateway()
    took = time.monotonic() - began
    _expect(took < _ATTACH_S, f"the next gateway started after {took:.1f} s")
    _exchange(left, right)
    program.signal(9)
    end_file_systems(_NOBODY)
    program.wait(10)
    deadline = time.monotonic() + 20
    while _receivers(left) > before:
        _expect(time.monotonic() < deadline, "processes that received files did not end with the file system")
        time.sleep(0.1)


def _unread(_, left, right):
    """The program has more connections than its pool allows, so that the gateway does not accept them all."""
    for host in (left, right):
        host.start_gateway()
    program = left.start([left.program("hostile"), "unread_files", left.attach_socket], user=_NOBODY)
    program.expect("^unread$", 30)
    # As systemd does when the gateway crashes: the process alone.
    os.kill(left.daemon.pid, signal.SIGKILL)
    began = time.monotonic()
    left.daemon.wait(30)
    took = time.monotonic() - began
    _expect(took < _ATTACH_S, f"the killed gateway ended after {took:.1f} s")
    left.start_gateway()
    _exchange(left, right)
    program.signal(9)
    end_file_systems(_NOBODY)
    program.wait(10)


def _stopped(_, left, right):
    for host in (left, right):
        host.start_gateway()
    left.daemon.signal(signal.SIGSTOP)
    time.sleep(_STOPPED_S)
    left.daemon.signal(signal.SIGCONT)
    _well(left)
    _exchange(left, right)
    _well(left)
    _expect("stuck" not in left.log(), f"a false alarm of the watchdog:\n{left.log()[-2000:]}")


def _clock(lab, left, right):
    """The clock of one gateway is moved under a program that stays."""
    clock = lab.path("clock")
    library = os.path.join(os.path.dirname(left.binaries), "lib", "libshifted_clock.so")
    _expect(os.path.exists(library), f"there is no {library}")
    environment = {"LD_PRELOAD": library, "ROCEGW_TEST_CLOCK": clock}
    _set_clock(clock, 0)
    os.environ.update(environment)
    try:
        left.start_gateway()
    finally:
        for name in environment:
            del os.environ[name]
    right.start_gateway()
    programs = left.start([left.program("many_sessions"), "1"])
    programs.expect("^open$", 60)
    for ahead in (50 * _YEAR_S, -20 * _YEAR_S, 0):
        _set_clock(clock, ahead)
        _exchange(left, right)
        _well(left)
        left.control("--local", "get", "sessions")
    _expect("DEVICE" not in programs.output and programs.running, f"the program did not stay:\n{programs.output}")
    programs.signal(9)


def _set_clock(path, ahead):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(str(ahead))
    os.rename(path + ".new", path)


_PARTS = {"disk": _full_disk, "interface": _interface, "namespace": _namespace, "restart": _restart,
          "unanswered": _unanswered, "unread": _unread, "stopped": _stopped, "clock": _clock}
# Sessions that a pool may have: of most parts enough for their programs, or so few that the gateway stops accepting.
_SESSIONS = {"unread": 8}


def main():
    binaries = os.path.abspath(sys.argv[1])
    chosen = sys.argv[2:] or list(_PARTS)
    for name in chosen:
        part = _PARTS[name]
        settings = f"default_pool: {{limits: {{sessions: {_SESSIONS.get(name, 2 * _PROGRAMS)}}}}}\n"
        with Lab() as lab:
            left, right = gateway_pair(lab, binaries, settings=settings)
            part(lab, left, right)
            print(f"pass {name}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
