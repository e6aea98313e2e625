# SPDX-License-Identifier: Apache-2.0
"""Endpoints between two gateways: examples/messages.c, which checks every byte, with many peers, and with some that die."""

import collections
import re
import signal
import time

from netlab.job import LabError

from .case import Case, CaseFailure, expect

_SENDERS = 4
_RECEIVERS = 3
_MESSAGES = 60
_COUNT = 2000     # of each program that counts
_ENDLESS = 10**6  # messages: nobody waits for the end of it
_GIVEN_UP = 30    # seconds; an endpoint tries a message for five
_LOST = r"^messages: \S+ {number} cannot be reached: {why}"


class Receiver:
    def __init__(self, host, count, group=None):
        """group: how many endpoints share the messages, and how."""
        mode = ["receive", str(count)] if group is None else ["group", str(count), *group]
        self.job = host.start([host.program("example_messages"), *mode])
        self.address, self.number = self.job.expect(r"^send to (\S+) (\d+)", 30).groups()

    def got(self):
        """Texts of messages by the number of the sender."""
        texts = collections.defaultdict(list)
        for source, text in re.findall(r"^(?:member \d+ )?from (\d+): (.*) \(\d+ bytes\)$", self.job.output, re.MULTILINE):
            texts[source].append(text)
        return texts

    def members(self):
        """Members of the group by the number of the sender."""
        members = collections.defaultdict(set)
        for member, source in re.findall(r"^member (\d+) from (\d+):", self.job.output, re.MULTILINE):
            members[source].add(member)
        return members


def start_sender(host, count, receivers):
    words = [word for receiver in receivers for word in (receiver.address, receiver.number)]
    return host.start([host.program("example_messages"), "send", str(count), *words])


def _end(pair, *jobs):
    for job in jobs:
        job.signal(signal.SIGKILL)
        job.wait(10)
    for host in (pair.left, pair.right):
        host.expect_idle()


# More small frames do not fit a datagram of the largest MTU that the cases use.
_IN_A_BUNDLE = 100


def _expect_all(text, count, what):
    wanted = [f"message {number}" for number in range(count)] + ["that was all"]
    expect(sorted(text) == sorted(wanted), f"{what} got {len(text)} messages, not each of {len(wanted)} once")
    expect(text[-1] == "that was all", f"{what}: the last message came before others")


def _many_peers(identifier, to_right):
    def run(pair):
        source, target = pair.roles(to_right)
        receivers = [Receiver(target, _SENDERS * (_MESSAGES + 1)) for _ in range(_RECEIVERS)]
        with pair.counted(at_least=_SENDERS * _RECEIVERS * _MESSAGES // _IN_A_BUNDLE):
            senders = [start_sender(source, _MESSAGES, receivers) for _ in range(_SENDERS)]
            for job in senders + [receiver.job for receiver in receivers]:
                status = job.wait(60)
                expect(status == 0, f"{job.title} ended with {status}:\n{job.output[-2000:]}")
        for receiver in receivers:
            got = receiver.got()
            expect(len(got) == _SENDERS, f"messages from {len(got)} senders, not {_SENDERS}")
            for number, texts in got.items():
                _expect_all(texts, _MESSAGES, f"endpoint {receiver.number}, from {number},")
        _end(pair)
        return f"{_SENDERS * _RECEIVERS * (_MESSAGES + 1)} messages, {_SENDERS} endpoints to {_RECEIVERS}"
    return Case(identifier, 1500, run, "channels")


def _group(dispatch):
    def run(pair):
        """Two senders, each of which sends more than a member has receives."""
        receiver = Receiver(pair.right, 2 * (_MESSAGES + 1), ("3", dispatch))
        senders = [start_sender(pair.left, _MESSAGES, (receiver,)) for _ in range(2)]
        for job in senders + [receiver.job]:
            status = job.wait(60)
            expect(status == 0, f"{job.title} ended with {status}:\n{job.output[-2000:]}")
        got = receiver.got()
        expect(len(got) == 2, f"messages from {len(got)} senders, not 2")
        for texts in got.values():
            # Members print when they come to it: only the set of messages is certain.
            wanted = [f"message {number}" for number in range(_MESSAGES)] + ["that was all"]
            expect(sorted(texts) == sorted(wanted), "not each message came once")
        members = receiver.members()
        used = set().union(*members.values())
        if dispatch == "hash":
            expect(all(len(one) == 1 for one in members.values()), f"a sender's messages went to several members: {members}")
        else:
            expect(len(used) == 3, f"only {len(used)} of 3 members got messages")
        _end(pair)
        return f"{2 * (_MESSAGES + 1)} messages to {len(used)} members"
    return Case(f"endpoint.group.{dispatch}", 1500, run, "channels")


def _counters(identifier, to_right, *environment):
    def run(pair):
        """Programs that add, take a lock and read in the memory of one that does nothing for it."""
        source, target = pair.roles(to_right)
        server = target.start([target.program("example_counters"), "serve", str(_SENDERS * _COUNT), str(_SENDERS)])
        where = server.expect(r"^count at (\S+) (\d+) (0x\w+) (0x\w+)", 30).groups()
        jobs = []
        try:
            with pair.counted(at_least=_SENDERS * _COUNT // _IN_A_BUNDLE):
                command = [*environment, source.program("example_counters"), "count", str(_COUNT), *where]
                jobs = [source.start(command) for _ in range(_SENDERS)]
                for job in jobs:
                    status = job.wait(60)
                    expect(status == 0, f"{job.title} ended with {status}:\n{job.output[-2000:]}")
            server.expect(rf"^counter {_SENDERS * _COUNT} reads {_SENDERS}\b", 10)
        finally:
            _end(pair, server, *jobs)
        return f"{_SENDERS} programs counted to {_SENDERS * _COUNT}"
    return Case(identifier, 1500, run, "channels")


def _counters_gone(pair):
    """Who counts learns that the other program has ended, and its gateways go on."""
    server = pair.right.start([pair.right.program("example_counters"), "serve", str(_ENDLESS), "1"])
    where = server.expect(r"^count at (\S+) (\d+) (0x\w+) (0x\w+)", 30).groups()
    job = pair.left.start([pair.left.program("example_counters"), "count", str(_ENDLESS * 100), *where])
    try:
        time.sleep(1)
        expect(job.running, f"it ended too soon:\n{job.output}")
        server.signal(signal.SIGKILL)
        job.expect("^counters: request: transport retry counter exceeded", _GIVEN_UP)
        expect(job.wait(10) == 1, "a request failed, and the status does not say so")
    finally:
        _end(pair, job, server)
    return "its requests fail"


def _receiver_killed(pair):
    """It is stopped first, so that it is in the middle of a message when it is killed: its receives are used up."""
    victim, witness = Receiver(pair.right, _ENDLESS), Receiver(pair.right, _ENDLESS)
    victim.job.signal(signal.SIGSTOP)
    sender = start_sender(pair.left, 300, (victim, witness))
    try:
        witness.job.expect(r"^from \d+: message 70 ", 30)
        victim.job.signal(signal.SIGKILL)
        sender.expect(_LOST.format(number=victim.number, why="transport retry counter exceeded"), _GIVEN_UP)
        expect(sender.wait(30) == 1, f"a message was lost, and the status does not say so:\n{sender.output}")
        expect(re.search(f"^to \\S+ {witness.number}: 301 of 301", sender.output, re.MULTILINE),
               f"the neighbour of a killed receiver did not get everything:\n{sender.output}")
        witness.job.expect(r"^from \d+: that was all", 10)
    finally:
        _end(pair, sender, victim.job, witness.job)
    (text,) = witness.got().values()
    _expect_all(text, 300, "the neighbour of a killed receiver")
    return "its messages fail, its neighbour gets all of them"


def _no_receives(pair):
    """A receiver that does not go on is told from one that is gone."""
    stopped = Receiver(pair.right, _ENDLESS)
    stopped.job.signal(signal.SIGSTOP)
    sender = start_sender(pair.left, 100, (stopped,))
    try:
        sender.expect(_LOST.format(number=stopped.number, why="RNR retry counter exceeded"), _GIVEN_UP)
        expect(sender.wait(10) == 1, "a message was lost, and the status does not say so")
    finally:
        _end(pair, sender, stopped.job)
    return "RNR retry counter exceeded"


def _sender_killed(pair):
    receiver = Receiver(pair.right, _ENDLESS)
    victim = start_sender(pair.left, _ENDLESS, (receiver,))
    jobs = [victim, receiver.job]
    try:
        receiver.job.expect("^from ", 30)
        witness = start_sender(pair.left, 200, (receiver,))
        jobs.append(witness)
        victim.signal(signal.SIGKILL)
        expect(witness.wait(60) == 0, f"the neighbour of a killed sender failed:\n{witness.output}")
        receiver.job.expect(r"^from \d+: that was all", 10)
        expect(receiver.job.running, f"the receiver did not outlive its sender:\n{receiver.job.output[-2000:]}")
    finally:
        _end(pair, *jobs)
    complete = [texts for texts in receiver.got().values() if "that was all" in texts]
    expect(len(complete) == 1, "not one of two senders came to its end")
    _expect_all(complete[0], 200, "from the neighbour of a killed sender the receiver")
    return "its neighbour is heard to the end"


def _gone(pair):
    """An endpoint that has ended, and an address behind which there is no gateway."""
    receiver = Receiver(pair.right, 1)
    sender = start_sender(pair.left, 0, (receiver,))
    expect((sender.wait(30), receiver.job.wait(10)) == (0, 0), f"a message did not arrive:\n{sender.output}")
    late = start_sender(pair.left, 0, (receiver,))
    late.expect(_LOST.format(number=receiver.number, why="transport retry counter exceeded"), _GIVEN_UP)
    expect(late.wait(10) == 1, "a message was lost, and the status does not say so")
    _end(pair)
    return "a message to who has ended fails"


def _no_gateway(pair):
    nobody = pair.left.start([pair.left.program("example_messages"), "send", "0", "10.77.0.99", "4711"])
    status = nobody.wait(30)
    expect(status == 1 and "10.77.0.99: No route to host" in nobody.output,
           f"status {status} for an address without a gateway:\n{nobody.output}")
    _end(pair)
    return "No route to host"


def _gateway_killed(pair):
    """The peer's gateway is killed and comes back: what was under way fails soon, what begins later finds the new one."""
    receiver = Receiver(pair.right, _ENDLESS)
    receiver.job.signal(signal.SIGSTOP)
    sender = start_sender(pair.left, 1000, (receiver,))
    try:
        pair.right.daemon.signal(signal.SIGKILL)
        pair.right.daemon.wait(10)
        pair.right.start_gateway()
        sender.expect(_LOST.format(number=receiver.number, why="transport retry counter exceeded"), _GIVEN_UP)
        again = Receiver(pair.right, 1)
        late = start_sender(pair.left, 0, (again,))
        expect(late.wait(30) == 0, f"the new gateway is not found:\n{late.output}")
    except LabError as error:
        raise CaseFailure(f"after the end of a gateway:\n{error}") from error
    finally:
        _end(pair, sender, receiver.job)
    return "the new gateway is found"


def endpoint_cases():
    cases = [_many_peers("endpoint.many_peers.to_right", True), _many_peers("endpoint.many_peers.to_left", False)]
    cases += [_group(dispatch) for dispatch in ("hash", "round-robin", "depth")]
    cases += [_counters("endpoint.counters.to_right", True), _counters("endpoint.counters.to_left", False),
              _counters("endpoint.atomics.to_right", True, "env", "LOCK=swap"), _counters("endpoint.atomics.to_left", False, "env", "LOCK=swap")]
    for name, run in (("counters_gone", _counters_gone), ("receiver_killed", _receiver_killed), ("no_receives", _no_receives), ("sender_killed", _sender_killed),
                      ("gone", _gone), ("gateway_killed", _gateway_killed)):
        cases.append(Case(f"endpoint.{name}", 1500, run, "channels"))
    cases.append(Case("endpoint.no_gateway", 1500, _no_gateway))
    return cases
