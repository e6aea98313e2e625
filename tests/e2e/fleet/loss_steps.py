# SPDX-License-Identifier: Apache-2.0
"""Steps in which a daemon is killed or loses its data."""

import glob
import os
import signal

from hosts import Hosts, OBJECTS
from netlab.fleet import eventually


class LossSteps(Hosts):

    def kill_controller(self):
        """kill -9 of the controller under traffic: programs go on, a restarted one carries on"""
        with self.traffic() as traffic:
            self.kill(self.controller)
            traffic.goes_on()
            self.controller.start()
            self.in_sync()
            self.controller.ctl("update", "tenant", "blue", "display_name=Azure", "--wait")

    def kill_agent(self):
        """kill -9 of an agent under traffic"""
        with self.traffic():
            self.kill(self.agents[1])
            self.agents[1].start()
            self.in_sync()

    def kill_gateway(self):
        """kill -9 of a gateway: it comes back with its pools, also while the controller is away"""
        self.kill(self.controller)
        host = self.hosts[1]
        host.daemon.signal(signal.SIGKILL)
        host.daemon.wait(10)
        host.start_gateway()
        eventually("the pool's socket again", lambda: self.socket_of(host))
        self.perftest(1)
        self.controller.start()
        self.in_sync()

    def lost_store(self):
        """The controller's database is lost under traffic: not one queue pair is cut, and nothing is taken away"""
        with self.traffic() as traffic:
            self.kill(self.controller)
            for path in glob.glob(os.path.join(self.controller.state, "fleet.db*")):
                os.unlink(path)
            self.controller.start()
            # Whose certificates are of the same authority are known again; what they run is not this store's.
            eventually("both gateways to report that they follow another store", lambda: self.unadopted() == 2)
            traffic.goes_on()
        self.perftest(1)
        self.controller.ctl("apply", "-f", "-", stdin=OBJECTS)
        self.controller.ctl("fleet", "adopt")
        self.in_sync()
        for host in self.hosts:
            host.attach_socket = eventually(f"a socket of the pool on {host.name}", lambda h=host: self.socket_of(h))
        self.perftest(1)

    def unadopted(self):
        gateways = self.controller.ctl("get", "gateways", "-o", "yaml")
        return gateways.count("AnotherStore")
