# SPDX-License-Identifier: Apache-2.0
"""Steps about hosts that join, tenants, pools and their limits."""

import os
import re
import signal

from hosts import ASKING, Hosts, OBJECTS, RATE, SLOWER, SMALLER, UNLIMITED, check
from netlab.fleet import eventually
from netlab.job import LabError


class TenantSteps(Hosts):

    def join(self):
        """A controller without anything, two hosts that join"""
        self.controller.start()
        for host, agent in zip(self.hosts, self.agents):
            host.start_gateway()
            agent.join(self.controller.join_file(host.name)).start()
        self.in_sync()
        names = self.controller.ctl("get", "gateways", "-o", "name").split()
        check(names == ["gateways/left", "gateways/right"], f"gateways are {names}")

    def pool(self):
        """A tenant and a pool, asked for once, run on both gateways; queue pairs come out of what is ready"""
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=OBJECTS)
        for host in self.hosts:
            host.attach_socket = eventually(f"a socket of the pool on {host.name}", lambda h=host: self.socket_of(h))
        self.perftest(2)
        for host in self.hosts:
            hits = [value for (name, labels), value in host.metrics().items()
                    if name == "rocegw_pool_ready_hits_total" and 'pool="fast"' in labels]
            check(sum(hits) >= 1, f"queue pairs out of what {host.name} keeps ready: {hits}")
        text = self.controller.ctl("get", "tenants", "-o", "name")
        check("tenants/blue" in text, f"tenants are:\n{text}")
        # Four on each gateway; told with the next heartbeat.
        eventually("the reserve", lambda: re.search(r"Ready:\n +Wanted: +8\n +Ready: +8",
                                                    self.controller.ctl("describe", "pool", "blue/fast")), 40)

    def quota(self):
        """A smaller quota holds for the next program, with errno and event"""
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=SMALLER)
        server, client = self.start_perftest(2)
        check(client.wait(30) != 0, f"two queue pairs with a quota of one:\n{client.output}")
        for job in (server, client):
            job.signal(signal.SIGKILL)
            job.wait(10)
        refused = [value for host in self.hosts for (name, labels), value in host.metrics().items()
                   if name == "rocegw_pool_refused_total" and 'pool="fast"' in labels and 'limit="qps"' in labels]
        check(sum(refused) >= 1, f"nothing was counted: {refused}")
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=OBJECTS)
        self.perftest(2)

    def identity(self):
        """A pool that asks: whom no rule of the agent allows is refused with errno and counter, others are not"""
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=ASKING)
        stranger = self.hosts[0].start(["ibv_devinfo", "-d", "rocegw0"])
        check(stranger.wait(30) != 0, f"somebody whom nobody knows got in:\n{stranger.output}")
        check("Permission denied" in stranger.output, f"it is not said why:\n{stranger.output}")
        refused = [value for (name, labels), value in self.hosts[0].metrics().items()
                   if name == "rocegw_pool_refused_total" and 'pool="fast"' in labels and 'limit="identity"' in labels]
        check(sum(refused) >= 1, f"nothing was counted: {refused}")
        for agent in self.agents:
            agent.configure(f"{{pool: tenants/blue/pools/fast, uids: [{os.geteuid()}], cgroups: [/]}}")
            eventually("the rules that were written", lambda a=agent: "attach_rules are read again" in a.daemon.output)
        self.perftest(1)
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=OBJECTS)
        self.perftest(1)

    def rate(self):
        """A pool sends no faster than its rate, which one sees; without the rate it is fast again"""
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=SLOWER)
        slow = self.perftest(1)
        check(0.6 * RATE < slow < 1.1 * RATE, f"{slow:.0f} bytes per second with a rate of {RATE}")
        held = [value for host in self.hosts for (name, labels), value in host.metrics().items()
                if name == "rocegw_pool_refused_total" and 'limit="bytes_per_second"' in labels and 'pool="fast"' in labels]
        check(sum(held) >= 1, f"nothing was counted: {held}")
        self.controller.ctl("apply", "-f", "-", "--wait", stdin=UNLIMITED)
        fast = self.perftest(1)
        check(fast > 2 * RATE, f"{fast:.0f} bytes per second without a rate")

    def refused(self):
        """What cannot be is refused with the field, and changes nothing"""
        wrong = OBJECTS.replace("slots: 1", "slots: 5000")
        try:
            self.controller.ctl("apply", "-f", "-", stdin=wrong)
        except LabError as error:
            check("spec.slots" in str(error), f"the field is not named:\n{error}")
        else:
            raise LabError("5000 slots were taken")
        self.perftest(1)

    def audit(self):
        """Every write is on record, and the chain is whole"""
        text = self.controller.ctl("audit", "list", "-o", "json")
        check("tenants/blue/pools/fast" in text, f"records are:\n{text}")
        self.controller.ctl("audit", "verify")
