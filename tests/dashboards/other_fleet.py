# SPDX-License-Identifier: Apache-2.0
"""A second fleet of nothing but a controller: on etcd, which can be lost, and with an authority that somebody made for less
than a year."""

import os
import signal

from netlab.fleet import Controller
from netlab.job import run

_CLIENTS, _PEERS = "http://127.0.0.1:2379", "http://127.0.0.1:2380"


class OtherFleet:
    """Runs on a host."""

    def __init__(self, lab, host, binaries):
        self._lab = lab
        self._namespace = host.namespace
        self._etcd = None
        self.controller = Controller(
            lab, host, binaries, "metrics: {address: \"0.0.0.0:7472\"}\n"
            f"store: {{backend: etcd, etcd: {{endpoints: [\"{_CLIENTS.removeprefix('http://')}\"]}}}}\n", name="other-controller")

    def start(self):
        self._make_authority()
        self.start_store()
        self.controller.start()

    def _make_authority(self):
        """As docs/operate/kubernetes.md has it, but for its time."""
        os.mkdir(self.controller.state, 0o700)
        run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "300",
             "-keyout", f"{self.controller.state}/ca.key", "-out", f"{self.controller.state}/ca.crt",
             "-subj", "/O=rocegw/CN=fleet rocegw", "-addext", "subjectAltName=URI:spiffe://rocegw",
             "-addext", "basicConstraints=critical,CA:TRUE,pathlen:0", "-addext", "keyUsage=critical,keyCertSign,cRLSign"])

    def start_store(self):
        self._etcd = self._lab.start(
            ["etcd", "--data-dir", self._lab.path("etcd"), "--listen-client-urls", _CLIENTS, "--advertise-client-urls", _CLIENTS,
             "--listen-peer-urls", _PEERS, "--initial-advertise-peer-urls", _PEERS, "--initial-cluster", f"default={_PEERS}"],
            title="etcd", namespace=self._namespace)
        self._etcd.expect("ready to serve client requests", 60)

    def kill_store(self):
        self._etcd.signal(signal.SIGKILL)
        self._etcd.wait(20)
