# SPDX-License-Identifier: Apache-2.0
"""Steps about captures and drains under traffic."""

import json
import os
import signal

from hosts import Hosts, check
from netlab.fleet import eventually
from netlab.job import LocalJob, run

DISSECTOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "develop", "wireshark",
                         "rocegw.lua")


class CaptureSteps(Hosts):

    def capture(self):
        """A capture of one tenant has all its packets and nobody else's; one of the gateway has both"""
        left, right = self.hosts
        pooled = [host.attach_socket for host in self.hosts]
        blue = self.start_endless()
        for host in self.hosts:
            host.attach_socket = os.path.join(host.directory, "attach.sock")  # the default tenant's
        other = self.start_endless()
        for host, attach_socket in zip(self.hosts, pooled):
            host.attach_socket = attach_socket
        queue_pairs = json.loads(self.controller.ctl("get", "qps", "-g", "left", "-o", "json"))["qps"]
        sessions = {row["id"]: row["pool"] for row in
                    json.loads(self.controller.ctl("get", "sessions", "-g", "left", "-o", "json"))["sessions"]}
        ends = {True: set(), False: set()}
        for row in queue_pairs:
            if row.get("remoteQpn"):
                mine = sessions[row["session"]] == "tenants/blue/pools/fast"
                ends[mine] |= {(right.address4, row["qpn"]), (left.address4, row["remoteQpn"])}
        check(ends[True] and ends[False], f"no connected queue pairs: {queue_pairs}")
        whole = self.captured("--duration", "3", "--max-bytes", "2MiB", "--snaplen", "128")
        check(whole & ends[True] and whole & ends[False], f"the whole capture lacks somebody: {whole}")
        for words in (("--tenant", "blue"), ("--pool", "blue/fast")):
            part = self.captured(*words, "--count", "2000")
            check(part == ends[True], f"of blue: {ends[True]}, captured: {part}; its programs: {[job.output for job in blue]}")
        local = self.captured("--tenant", "default", "--count", "500", host=left)
        check(local == ends[False], f"of the default tenant: {ends[False]}, captured: {local}")
        for job in (*blue, *other):
            job.signal(signal.SIGKILL)
            job.wait(10)
        # Who captures goes: the gateway ends it, and another may begin.
        words = ("capture", "-g", "left", "--tenant", "blue", "--duration", "10m", "-w", self.lab.path("gone.pcapng"))
        gone = LocalJob(self.controller.ctl_words(*words), namespace=left.namespace)
        eventually("a file", lambda: os.path.exists(words[-1]) and os.path.getsize(words[-1]) > 0)
        gone.signal(signal.SIGKILL)
        gone.wait(10)
        eventually("the end of the capture", lambda: "capture ends" in left.log())
        self.captured("--tenant", "blue", "--duration", "1")
        audited = json.loads(self.controller.ctl("audit", "list", "-o", "json"))
        check("CapturePool" in str(audited) and "600s" in str(audited),
              f"captures are not on record with their bounds: {audited}")

    def drain(self):
        """Drains whose deadline comes under load: connections end in order, or sessions end, and the peer sees it"""
        left, right = self.hosts
        for what in ("disconnect", "abort"):
            server, client = self.start_endless()
            pinging = self.traffic().start()
            path = self.lab.path(f"{what}.pcapng")
            words = ("capture", "-g", "left", "--qp", "1", "--duration", "5m", "-w", path)
            begun = left.log().count("capture begins")
            capture = LocalJob(self.controller.ctl_words(*words), namespace=left.namespace)
            eventually("the begin of the capture", lambda n=begun: left.log().count("capture begins") > n)
            text = self.controller.ctl("drain", "right", "--deadline", "2s", "--on-deadline", what, "--wait",
                                       "--timeout", "30")
            check("gateways/right drained" in text, text)
            # It only polls; what it had posted came back flushed.
            check(client.wait(30) != 0, f"the program on the drained host did not notice:\n{client.output}")
            check("Failed status 5" in client.output, f"nothing was flushed:\n{client.output}")
            if what == "disconnect":
                eventually("a disconnect request", lambda p=path: "0x0015" in self.cm_messages(p))
                for end in (pinging.server, pinging.client):
                    end.expect("DISCONNECT EVENT", 10)
                pinging.client.wait(30)
            sessions = json.loads(self.controller.ctl("get", "sessions", "-g", "right", "-o", "json"))
            check(not sessions.get("sessions"), f"sessions on a gateway that is empty: {sessions}")
            shown = self.controller.ctl("describe", "gateway", "right")
            check("draining" in shown and "Empty:" in shown, f"the drain is not shown:\n{shown}")
            late = right.start(["ibv_devinfo", "-d", "rocegw0"])
            check(late.wait(30) != 0, f"a program got in:\n{late.output}")
            # Ctrl-C: the file is good, and what is in it is said.
            capture.signal(signal.SIGINT)
            check(capture.wait(10) == 0 and "packets" in capture.output and "interrupted" in capture.output,
                  f"{capture.returncode}: {capture.output}")
            self.cm_messages(path)
            self.controller.ctl("undrain", "right")
            self.in_sync()
            pinging.stop()
            for job in (server, client):
                job.signal(signal.SIGKILL)
                job.wait(10)
            self.perftest(1)

    def captured(self, *words, host=None):
        """What a capture on the left host holds: (source address, destination queue pair). Frames of channels name theirs
        behind the BTH; what belongs to channels alone has none."""
        path = self.lab.path("capture.pcapng")
        words = ("capture", *words, "-w", path)
        if host:
            host.control(*words)
        else:
            self.controller.ctl(*words, "-g", "left")
        text = run(["tshark", "-r", path, "-X", f"lua_script:{DISSECTOR}", "-T", "fields", "-e", "ip.src",
                    "-e", "infiniband.bth.destqp", "-e", "rocegw.frame.destination", "-e", "_ws.malformed"])
        seen = set()
        for line in text.splitlines():
            if line.startswith("Running as user"):
                continue
            source, native, frame, *malformed = line.split("\t")
            check(not any(malformed), f"tshark finds it malformed: {line}")
            # A bundle has several frames.
            for number in (native or frame or "1").split(","):
                if int(number, 16) != 1:
                    seen.add((source, int(number, 16)))
        return seen

    @staticmethod
    def cm_messages(path):
        """Attributes of the connection manager's messages in a capture."""
        text = run(["tshark", "-r", path, "-T", "fields", "-e", "infiniband.mad.attributeid"])
        return {line for line in text.split() if line.startswith("0x")}
