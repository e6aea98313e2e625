# SPDX-License-Identifier: Apache-2.0
"""States, shared receive queues and the service without answers of endpoints: tests/e2e/endpoints/endpoint_check.c, which checks
what it finds."""

import json
import re
import signal

from .case import Case, expect

_MESSAGES = 20000
_CASTS = 5000


class Checked:
    """A program that waits for messages, and where it is."""

    def __init__(self, host, *words):
        self.job = host.start([host.program("endpoint_check"), *words])
        self.address, self.number = self.job.expect(r"^send to (\S+) (\d+)", 30).groups()


def start_check(host, words, target, environment=()):
    return host.start([*environment, host.program("endpoint_check"), *words, target.address, target.number])


def kill_all(*jobs):
    for job in jobs:
        job.signal(signal.SIGKILL)
        job.wait(10)


def end_checks(pair, *jobs):
    try:
        for job in jobs:
            status = job.wait(60)
            expect(status == 0, f"{job.title} ended with {status}:\n{job.output[-2000:]}")
    finally:
        kill_all(*jobs)
    for host in (pair.left, pair.right):
        host.expect_idle()


def suspend_and_drain(pair, while_suspended=None):
    """A sender suspends in the middle, a receiving member of a group drains; each message comes once. `while_suspended`: is called
    in the meantime."""
    receiver = Checked(pair.right, "serve", str(_MESSAGES))
    environment = ("env", "WAIT=1") if while_suspended is not None else ()
    sender = start_check(pair.left, ["send", str(_MESSAGES)], receiver, environment)
    try:
        suspended = sender.expect(r"^suspended with (\d+) requests that have not begun", 30).group(1)
        if while_suspended is not None:
            while_suspended()
            sender.signal_program(signal.SIGUSR1)
    except BaseException:
        kill_all(sender, receiver.job)
        raise
    end_checks(pair, sender, receiver.job)
    drained = re.search(r"^a member has drained after (\d+) messages$", receiver.job.output, re.MULTILINE)
    expect(drained is not None, f"no member has drained:\n{receiver.job.output}")
    expect(f"got {_MESSAGES} messages, each once" in receiver.job.output, f"not each message came once:\n{receiver.job.output}")
    return f"suspended with {suspended} requests, drained after {drained.group(1)} of {_MESSAGES} messages"


def _exception(pair):
    receiver = Checked(pair.right, "listen")
    before = _exceptions(pair.left)
    sender = start_check(pair.left, ["fail"], receiver)
    end_checks(pair, sender, receiver.job)
    expect("went on after an exception" in sender.output, f"no exception:\n{sender.output}")
    expect(_exceptions(pair.left) == before + 1, "the exception is not counted")
    return "suspended by a failure, and went on"


def _shown(pair):
    """Operators see an endpoint's state, here that of a suspended sender."""
    def look():
        rows = [row for row in json.loads(pair.left.control("get", "qps", "-o", "json"))["qps"] if "endpoint" in row]
        expect([row["endpoint"]["state"] for row in rows] == ["suspended"], f"endpoints:\n{rows}")
        expect(rows[0]["endpoint"]["mode"] == "unordered" and rows[0]["endpoint"]["requests"] == 0, f"an endpoint:\n{rows}")
        number = f"0x{rows[0]['qpn']:06x}"
        table = pair.left.control("get", "qps")
        expect(re.search(rf"^{number} +ENDPOINT +suspended ", table, re.MULTILINE), f"the table:\n{table}")
        text = pair.left.control("describe", "qp", number)
        expect("suspended" in text, f"described:\n{text}")
    return suspend_and_drain(pair, look)


def _exceptions(host):
    return sum(value for (name, _), value in host.metrics().items() if name == "rocegw_endpoint_exception_events_total")


def _unacknowledged(pair):
    receiver = Checked(pair.right, "listen")
    sender = start_check(pair.left, ["cast", str(_CASTS)], receiver)
    end_checks(pair, sender, receiver.job)
    heard, cast = map(int, re.search(r"^heard (\d+) of (\d+) messages$", receiver.job.output, re.MULTILINE).groups())
    expect(cast == _CASTS and heard > 0, f"heard {heard} of {cast} messages")
    return f"{heard} of {cast} messages, none twice"


def endpoint_state_cases():
    return [Case("endpoint.states", 1500, suspend_and_drain, "channels"),
            Case("endpoint.shown", 1500, _shown, "channels"),
            Case("endpoint.exception", 1500, _exception, "channels"),
            Case("endpoint.unacknowledged", 1500, _unacknowledged, "channels")]
