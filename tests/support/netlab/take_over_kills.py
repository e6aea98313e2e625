# SPDX-License-Identifier: Apache-2.0
"""Take-overs of which the old process or the new one is killed at a random moment, under verified messages."""

import random
import signal
import time

from .echo_traffic import EchoTraffic
from .job import LabError

OLD_HANDED_OVER = "old killed, handed over"
OLD_NOT_HANDED_OVER = "old killed, not handed over"
NEW_OLD_GOES_ON = "new killed, old goes on"
NEW_AS_GATEWAY = "new killed as the gateway"
# The old one says it when the new one is the gateway, and ends a moment later.
_LEAVES = "is the gateway after a pause"


class TakeOverKills:
    """host: its gateways are killed. peer: the other end of the messages. One gateway must be left after each kill; the messages
    go on, unless the gateway that had the program was killed."""

    def __init__(self, host, peer, seed=None):
        self.host = host
        self.peer = peer
        self.seed = random.randrange(1 << 32) if seed is None else seed
        self.counts = {name: 0 for name in (OLD_HANDED_OVER, OLD_NOT_HANDED_OVER, NEW_OLD_GOES_ON, NEW_AS_GATEWAY)}
        self._random = random.Random(self.seed)
        self._took = 0.3  # seconds of a take-over
        self.traffic = self._start()

    def _start(self):
        return EchoTraffic(self.peer, self.host, "rc", 16)

    def one(self):
        """Kills one process. LabError when no gateway is left, or a message is lost or wrong."""
        number = sum(self.counts.values())
        old, began = self.host.daemon, time.monotonic()
        fresh = self.host.begin_take_over()
        time.sleep(self._random.uniform(0, 1.3 * self._took))
        if number % 2 == 0:
            outcome, goes_on = self._kill_old(old, fresh, began), fresh
        else:
            outcome, goes_on = self._kill_new(old, fresh), old
        self.counts[outcome] += 1
        if outcome in (OLD_HANDED_OVER, NEW_OLD_GOES_ON):
            time.sleep(0.1)
            if not goes_on.running:
                raise LabError(f"seed {self.seed}, kill {number}: no gateway is left\n{old.output}\n{fresh.output}")
            return self.traffic.check()
        # The program hears that its gateway ended; until then all was right.
        if "wrong: " in self.traffic.client.output:
            raise LabError(f"seed {self.seed}, kill {number}: {self.traffic.client.output}")
        self.traffic.kill()
        self.peer.expect_idle()
        self.traffic = self._start()
        return None

    def _kill_old(self, old, fresh, began):
        old.signal(signal.SIGKILL)
        old.wait(20)
        fresh.expect("is ready: ", 20)
        self.host.daemon = fresh
        if "take-over from version" not in fresh.output:
            return OLD_NOT_HANDED_OVER
        self._took = min(self._took, max(0.05, time.monotonic() - began))
        return OLD_HANDED_OVER

    def _kill_new(self, old, fresh):
        fresh.signal(signal.SIGKILL)
        fresh.wait(20)
        time.sleep(0.5)
        if _LEAVES in old.output:
            old.wait(20)
        if old.running:
            return NEW_OLD_GOES_ON
        self.host.start_gateway()
        return NEW_AS_GATEWAY

    def end(self):
        """The report of the messages since the last one that a kill ended."""
        return self.traffic.end()

    def text(self):
        return ", ".join(f"{name}: {number}" for name, number in self.counts.items())
