# SPDX-License-Identifier: Apache-2.0
"""Steps in which the fleet's gateways are replaced while they run."""

import json
import signal

from hosts import Hosts, RATE, SLOWER, SMALLER, UNLIMITED, check
from netlab.fleet import eventually
from netlab.job import LabError


class UpgradeSteps(Hosts):

    def upgrade(self):
        """rocegwctl upgrade under traffic: both gateways in waves, one that refuses, kill -9 of the controller meanwhile"""
        before = self.take_overs()
        with self.traffic() as traffic:
            self.controller.ctl("upgrade", "start", "all", "--all", "--waves", "1", "--soak", "1s", "--watch", "--timeout", "60")
            for gateway in self.upgraded("all"):
                check(gateway["state"] == "REPLACED" and int(gateway["handedOver"]["sessions"]) >= 1, f"not as it should be: {gateway}")
            self.expect_take_overs(before, 1)
            traffic.goes_on()
            self.refuse(traffic)
            self.expect_take_overs(before, 2)
            self.kill_meanwhile()
            self.expect_take_overs(before, 3)
        audit = self.controller.ctl("audit", "list", "--resource", "upgrades/all")
        check("upgrade" in audit, f"no record of the upgrade:\n{audit}")
        for host in self.hosts:
            eventually(f"a record of each take-over of {host.name}", lambda h=host: self.recorded(h) == 3)
        # The lab follows processes that it has started.
        for host in self.hosts:
            host.take_over()
        self.in_sync()
        self.live_limits()

    def live_limits(self):
        """Limits that were changed at run time hold in the next process, for what is held already, too."""
        jobs = self.start_endless()
        more = ()
        try:
            self.controller.ctl("apply", "-f", "-", "--wait", stdin=SMALLER)
            for host in self.hosts:
                host.take_over()
            more = self.start_perftest(1)
            check(more[1].wait(30) != 0, f"a second queue pair with a quota of one:\n{more[1].output}")
            check(all(job.running for job in jobs), f"the programs ended:\n{jobs[0].output}\n{jobs[1].output}")
        finally:
            for job in (*jobs, *more):
                job.signal(signal.SIGKILL)
                job.wait(10)
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=SLOWER)
        for host in self.hosts:
            host.expect_idle()
            host.take_over()
        slow = self.perftest(1)
        check(0.6 * RATE < slow < 1.1 * RATE, f"{slow:.0f} bytes per second with a rate of {RATE}")
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=UNLIMITED)
        self.in_sync()

    def refuse(self, traffic):
        """A gateway that refuses pauses the upgrade; when the reason is gone, it is tried again."""
        right = self.hosts[1]
        with open(right.config, encoding="utf-8") as file:
            original = file.read()
        with open(right.config, "w", encoding="utf-8") as file:
            file.write(original.replace("workers: 1", "workers: 2"))
        try:
            self.controller.ctl("upgrade", "start", "refused", right.name, self.hosts[0].name, "--soak", "0s", "--watch", "--timeout", "60")
            raise LabError("an upgrade with another number of workers was done")
        except LabError as error:
            check("PAUSED" in str(error) and "workers 2" in str(error), f"not the expected refusal: {error}")
        finally:
            with open(right.config, "w", encoding="utf-8") as file:
                file.write(original)
        refused = self.upgraded("refused")[0]
        check((refused["state"], refused["reason"]) == ("REFUSED", "configuration"), f"not the expected refusal: {refused}")
        traffic.goes_on()
        self.controller.ctl("upgrade", "retry", "refused", "--watch", "--timeout", "60")

    def kill_meanwhile(self):
        """A restarted controller goes on where the killed one was."""
        self.controller.ctl("upgrade", "start", "killed", "--all", "--waves", "1", "--soak", "1s")
        eventually("the first gateway replaced", lambda: self.upgraded("killed")[0]["state"] == "REPLACED")
        self.kill(self.controller)
        self.controller.start()
        self.controller.ctl("upgrade", "status", "killed", "--watch", "--timeout", "60")

    def upgraded(self, name):
        return json.loads(self.controller.ctl("upgrade", "status", name, "-o", "json"))["upgrade"]["gateways"]

    def recorded(self, host):
        return self.controller.ctl("audit", "list", "--resource", f"gateways/{host.name}", "-o", "json").count('"take-over"')

    def take_overs(self):
        return [host.metrics()[("rocegw_take_over_seconds_count", "")] for host in self.hosts]

    def expect_take_overs(self, before, more):
        now = self.take_overs()
        check(now == [count + more for count in before], f"take-overs were {before}, are {now}, not {more} more")
