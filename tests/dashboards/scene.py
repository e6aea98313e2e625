# SPDX-License-Identifier: Apache-2.0
"""What the steps share that happen to a fleet under a Prometheus: waiting for what is to be seen, and troubles that several have."""

import itertools
import signal

from netlab.job import LabError
from prometheus import MOST


def expect_running(jobs):
    ended = [job for job in jobs if not job.running]
    if ended:
        raise LabError("traffic has ended\n" + "".join(f"{job.title}: {job.returncode}\n{job.output[-500:]}" for job in ended))


class Scene:
    """A fleet (scraped_fleet.Fleet) and the Prometheus that scrapes it."""

    def __init__(self, fleet, prometheus):
        self.fleet, self.prometheus = fleet, prometheus
        self.left, self.right = fleet.hosts
        self.rounds, self.until_shows, self.until_fires = prometheus.rounds, prometheus.until_shows, prometheus.until_fires
        self._names = itertools.count()

    def in_order(self):
        self.fleet.in_order()
        self.until_shows("sum(rocegw_agent_in_sync) == 2")

    def stop_in_a_change(self):
        """The gateway on the right, which an agent asks to apply something. That its gateway does not answer it finds out in
        five seconds, and then it is another alert; what comes later than that does not come to the agent at all."""
        self.right.daemon.signal(signal.SIGCONT)
        self.in_order()
        self.right.daemon.signal(signal.SIGSTOP)
        self.fleet.controller.ctl("update", "tenant", "blue", f"display_name=Azure{next(self._names)}")
        self.rounds(2)

    def on_a_bad_link(self, programs, alert, *counters):
        """Traffic while the link loses, marks and damages packets"""
        # Marks from the first packet on: whoever has lost one may take another algorithm, which wants none.
        self.fleet.link.mark = 11
        traffic = [job for words in programs for job in self.fleet.connected(*words)]
        self.fleet.link.lose, self.fleet.link.damage = 37, 53
        pairs = self.fleet.check_verbs("cm")
        for server, client in pairs:
            client.wait(4 * MOST)
            self.fleet.kill(server)
        self.until_fires(alert, "RocegwDamagedPackets", "RocegwDeliveryBudgetBurns", doing=lambda: expect_running(traffic))
        self.until_shows(*(f"sum({counter})" for counter in counters), doing=lambda: expect_running(traffic))
        self.fleet.link.well()
        self.fleet.end(*traffic)
