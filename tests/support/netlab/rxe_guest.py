# SPDX-License-Identifier: Apache-2.0
"""A QEMU guest with Debian's kernel and its soft-RoCE driver, an RDMA peer that this project did not write.

The guest is emulated (TCG), so it needs no /dev/kvm; it boots in a few seconds. It sits on a tap device of a namespace.
Programs are started through guest_agent over a virtio-serial port, whatever state the guest's network is in."""

import contextlib
import os
import signal
import socket
import struct
import threading

from .host import Host
from .job import Job, LabError, run

_HEADER = struct.Struct("<IIB")
_GUEST_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "interop", "guest")
_COUNTERS = "/sys/class/infiniband/rxe0/ports/1/hw_counters"
_LINK_STATE = """cat /proc/net/dev; grep virtio /proc/interrupts; grep NET_ /proc/softirqs; ps | grep -v '\\[';
cd /sys/class/net/eth0/queues/tx-0 && grep . tx_timeout byte_queue_limits/inflight; dmesg | tail -n 60"""
_QUEUES = [f"info virtio-queue-status /machine/peripheral-anon/device[0]/virtio-backend {queue}" for queue in (0, 1)]


class GuestJob(Job):
    def __init__(self, guest, number, command):
        super().__init__(f"{guest.name}: {command}")
        self._guest = guest
        self._number = number

    def signal(self, number):
        if self.running:
            self._guest.send(self._number, "K", bytes([number]))


class RxeGuest(Host):
    """addresses: (IPv4, IPv6) as text without prefix length. The prefix lengths are 24 and 64. neighbour: an address that
    answers whenever the link works."""

    def __init__(self, lab, name, namespace, tap, addresses, image, mtu=4200, neighbour=None):
        super().__init__(name, addresses, device="rxe0")
        self._lab = lab
        self._namespace = namespace
        self._tap = tap
        self._image = image
        self._mtu = mtu
        self._neighbour = neighbour
        self._mac = "52:54:00:%02x:%02x:%02x" % tuple(int(part) for part in addresses[0].split(".")[1:])
        self._console = lab.path(f"{name}.console")
        self._agent_path = lab.path(f"{name}.agent")
        self._monitor_path = lab.path(f"{name}.monitor")
        self._start_qemu()
        lab.on_close(self.power_off)

    def _start_qemu(self):
        self._jobs = {}
        self._next = 1
        self._lock = threading.Lock()
        self._ready = threading.Event()  # the agent has spoken, or the guest has ended
        self._up = False
        self._gone = False
        kernel_root, initramfs = self._image
        # tsc=reliable: with two possible processors Linux would keep time by the HPET, whose readings take so long here that
        # perftest refuses to know the processor's clock and prints inf.
        append = (f"console=ttyS0 quiet panic=-1 net.ifnames=0 mitigations=off tsc=reliable rocegw.mtu={self._mtu} "
                  f"rocegw.addr4={self.address4}/24 rocegw.addr6={self.address6}/64")
        command = [
            # It stands for a machine of its own; polling workers are not to keep it from its processor.
            "nice", "-n", "-10", "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "768",
            # One processor. For a machine that can have but one this emulator leaves the lock out of locked instructions, Linux's
            # memory barrier among them, though its devices run on other threads: then the guest at times does not see that a
            # virtio queue wants a notification, and the queue stands still for good.
            "-smp", "1,maxcpus=2",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", _kernel(kernel_root), "-initrd", initramfs, "-append", append,
            "-serial", f"file:{self._console}",
            "-monitor", f"unix:{self._monitor_path},server=on,wait=off",
            "-netdev", f"tap,id=net0,ifname={self._tap},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=net0,mac={self._mac},host_mtu=4200",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={self._agent_path},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=rocegw.agent",
        ]
        self._qemu = self._lab.start(command, title=f"qemu {self.name}", namespace=self._namespace)

    def wait_ready(self, timeout=120):
        """Connects to the agent and waits for its first word."""
        self._socket = _connect(self._agent_path, self._qemu)
        self._reader = threading.Thread(target=self._receive, daemon=True)
        self._reader.start()
        self._ready.wait(timeout)
        if not self._up:
            raise LabError(f"{self.name} did not boot within {timeout} s:\n{self.console()}")
        return self

    def revive(self):
        if not self._gone and self._qemu.running:
            return ""
        raise LabError(f"{self.name} is gone; last of its console:\n{self.console()}")

    def link_fault(self):
        """A guest's virtio queue has been seen to stand still until its end, on a busy machine. Nothing of a gateway is in
        there; without a guest that can be reached there is nothing to judge it by, though."""
        if self._neighbour is None or self._gone:
            return ""
        ping = self.start_plain(f"ping -c 3 -W 1 {self._neighbour}")
        if ping.wait(20) == 0:
            return ""
        story = "\n".join([f"{self.name}: no answer from {self._neighbour}", self._told(_LINK_STATE), self._monitor(_QUEUES),
                           self._qemu.output])
        self.power_off()
        self._reader.join()
        self.forget_gids()
        self._start_qemu()
        self.wait_ready()
        return story

    def _told(self, command):
        try:
            return self.run_plain(command, 20)
        except LabError as error:
            return str(error)

    def _monitor(self, commands):
        """What QEMU's monitor answers, without the line editor's work. QEMU ends with that."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(5)
            connection.connect(self._monitor_path)
            connection.sendall("".join(line + "\n" for line in (*commands, "quit")).encode())
            text = connection.makefile(errors="replace").read()
            return "\n".join(line.rstrip() for line in text.splitlines() if "\x1b" not in line)
        return "no monitor"

    def console(self):
        try:
            with open(self._console, encoding="utf-8", errors="replace") as file:
                return file.read()[-4000:]
        except OSError:
            return ""

    def power_off(self):
        self._qemu.signal(signal.SIGKILL)
        self._qemu.wait(10)

    # The agent's protocol, see tests/interop/guest/agent.c ----------------------------------------------------------

    def send(self, number, kind, payload):
        try:
            with self._lock:
                self._socket.sendall(_HEADER.pack(len(payload), number, ord(kind)) + payload)
        except OSError as error:
            raise LabError(f"{self.name} is gone ({error}):\n{self.console()}") from error

    def _receive(self):
        stream = self._socket.makefile("rb")
        try:
            while True:
                header = stream.read(_HEADER.size)
                if len(header) < _HEADER.size:
                    break
                length, number, kind = _HEADER.unpack(header)
                payload = stream.read(length)
                self._on_frame(number, chr(kind), payload)
        except OSError:
            pass
        self._gone = True
        self._ready.set()
        for job in list(self._jobs.values()):
            job._set_ended(-signal.SIGKILL)

    def _on_frame(self, number, kind, payload):
        if kind == "H":
            self._up = True
            self._ready.set()
        elif kind == "O":
            self._jobs[number]._add_output(payload.decode("utf-8", "replace"))
        elif kind == "X":
            status = struct.unpack("<i", payload)[0]
            self._jobs.pop(number)._set_ended(os.waitstatus_to_exitcode(status))

    # Host -----------------------------------------------------------------------------------------------------------

    def start(self, command, user=None):
        text = command if isinstance(command, str) else " ".join(_quote(word) for word in command)
        with self._lock:
            number = self._next
            self._next += 1
            job = self._jobs[number] = GuestJob(self, number, text)
        self.send(number, "R", text.encode())
        return job

    start_plain = start

    def program(self, name):
        """Path of a program that was packed into the guest."""
        return f"/bin/{name}"

    def counters(self):
        """The driver's own counters."""
        text = self.run_plain(f"cd {_COUNTERS} && for f in *; do echo $f $(cat $f); done")
        return {name: int(value) for name, value in (line.split() for line in text.splitlines())}

    def moved(self, before, after):
        """Packets the driver says it sent and received between two readings."""
        return after["sent_pkts"] - before["sent_pkts"], after["rcvd_pkts"] - before["rcvd_pkts"]

    def set_mtu(self, mtu):
        self.run_plain(f"ip link set eth0 mtu {mtu}")
        self._mtu = mtu


def _connect(path, qemu):
    """The socket appears when QEMU has parsed its command line; inotify is not worth it, QEMU's own end is watched."""
    deadline = threading.Event()
    for _ in range(400):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
        if not qemu.running:
            break
        deadline.wait(0.025)
    raise LabError(f"{qemu.title}: no agent socket; output:\n{qemu.output}")


def _quote(word):
    return "'" + word.replace("'", "'\\''") + "'"


def _kernel(root):
    folder = os.path.join(root, "boot")
    names = sorted(name for name in os.listdir(folder) if name.startswith("vmlinuz-") and name.endswith("-amd64"))
    return os.path.join(folder, names[-1])


def prepare_image(lab, cache, agent, programs, options=()):
    """Finds a kernel, keeping it in `cache` if it had to be unpacked, and packs the initramfs. `options`: those of
    build-initramfs, such as "--python". Returns what RxeGuest takes as image."""
    os.makedirs(cache, exist_ok=True)
    initramfs = lab.path("initramfs")
    root = run([os.path.join(_GUEST_SOURCE, "find-kernel"), os.path.abspath(os.path.join(cache, "kernel"))],
               timeout=300).splitlines()[-1]
    run([os.path.join(_GUEST_SOURCE, "build-initramfs"), *options, root, initramfs, agent, *programs], timeout=300)
    return root, initramfs
