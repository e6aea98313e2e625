# SPDX-License-Identifier: Apache-2.0
"""A pair of programs on two hosts whose queue pairs exchange verified messages (tests/bench/upgrade/verified_echo.cc)."""

import re
import signal

from .job import LabError

_REPORT = re.compile(r"^messages=(\d+) wrong=(\d+) open=(\d+) repeated=(\d+) pauses=(\d+) longest_ms=([0-9.]+) limits=(\d+)",
                     re.MULTILINE)
_NAMES = ("messages", "wrong", "open", "repeated", "pauses", "longest_ms", "limits")


class EchoTraffic:
    """kind: rc, srq, ud or xrc. environment: words VARIABLE=VALUE for both programs. registered: bytes of one memory region."""

    def __init__(self, server_host, client_host, kind, queue_pairs, length=1024, registered=0, environment=()):
        self.kind = kind
        port = str(server_host.fresh_port())
        program = ["env", *environment, server_host.program("verified_echo")]
        self.server = server_host.start([*program, "serve", str(server_host.gid_index(server_host.address4)), port])
        self.server.expect("^serving", 30)
        self.client = client_host.start([*program, "ask", str(client_host.gid_index(client_host.address4)), port,
                                         server_host.address4, str(queue_pairs), kind, str(length), str(registered)])
        self.client.expect("^connected", 60)

    def check(self):
        """LabError when a program ended or found something wrong."""
        for job in (self.client, self.server):
            if not job.running or "wrong: " in job.output:
                raise LabError(f"{job.title}: status {job.returncode}\nclient:\n{self.client.output}\nserver:\n{self.server.output}")

    def end(self):
        """Waits until all messages came back; the client's report. LabError when one is lost or wrong."""
        self.check()
        status = self.client.stop(60)
        found = _REPORT.search(self.client.output)
        if status != 0 or found is None:
            raise LabError(f"{self.client.title} ended with {status}\nclient:\n{self.client.output}\nserver:\n{self.server.output}")
        report = {name: float(value) if name == "longest_ms" else int(value) for name, value in zip(_NAMES, found.groups())}
        if report["wrong"] or report["open"] or not report["messages"]:
            raise LabError(f"{self.client.title}: {report}\nserver:\n{self.server.output}")
        if self.server.stop(20) != 0:
            raise LabError(f"{self.server.title} ended with {self.server.returncode}:\n{self.server.output}")
        return report

    def kill(self):
        for job in (self.client, self.server):
            job.signal(signal.SIGKILL)
            job.wait(10)
