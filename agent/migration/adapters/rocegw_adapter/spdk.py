# SPDX-License-Identifier: Apache-2.0
"""SPDK's NVMe-oF target, by its JSON-RPC. A path of the node is a listener of the subsystem; the subsystem was made with
ANA reporting."""

import itertools
import json
import socket

from .addresses import canonical
from .nvmet import tcp_peers
from .protocol import LONGEST_OUTPUT, Problem, failed, inconclusive

INVALID_PARAMETERS = -32602


class RpcError(Exception):
    """The target's answer is an error."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Rpc:
    """One connection to the target's socket."""

    def __init__(self, path, deadline):
        self.path = path
        self.ids = itertools.count(1)
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.connection.settimeout(deadline)
        try:
            self.connection.connect(path)
        except OSError as error:
            raise failed(f"{path}: {error}") from error

    def call(self, method, **parameters):
        number = next(self.ids)
        self.connection.sendall(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}).encode())
        answer = self._read_answer()
        if not isinstance(answer, dict) or answer.get("id") != number:
            raise inconclusive(f"{method}: the answer is not one to the request")
        if "error" in answer:
            raise RpcError(answer["error"].get("code"), f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def _read_answer(self):
        """Answers are JSON texts without a mark at their end."""
        text = b""
        while len(text) < LONGEST_OUTPUT:
            piece = self.connection.recv(65536)
            if not piece:
                break
            text += piece
            try:
                return json.loads(text)
            except ValueError:
                continue
        raise inconclusive(f"{self.path}: the answer is not understood")


class SpdkTarget:
    """The target of this host."""

    def __init__(self, call, nqn, socket_path):
        self.call = call
        self.nqn = nqn
        self.rpc = Rpc(socket_path, call.deadline)

    def _call(self, method, **parameters):
        try:
            return self.rpc.call(method, nqn=self.nqn, **parameters)
        except RpcError as error:
            raise failed(str(error)) from error

    def check_healthy(self):
        subsystem = next((each for each in self.rpc.call("nvmf_get_subsystems") if each.get("nqn") == self.nqn), None)
        if subsystem is None:
            raise failed(f"the target has no subsystem {self.nqn}")
        if not subsystem.get("namespaces"):
            raise failed("the subsystem has no namespace")

    @staticmethod
    def _address(address):
        return {"trtype": address["trtype"].upper(), "adrfam": {"ipv4": "IPv4", "ipv6": "IPv6"}[address["adrfam"]],
                "traddr": address["traddr"], "trsvcid": address["trsvcid"]}

    def _is(self, listed, address):
        wanted = self._address(address)
        return all(canonical(str(listed.get(key, ""))).lower() == value.lower() for key, value in wanted.items())

    def ana(self, address):
        """ANA state of the listener; None when there is none."""
        for listener in self._call("nvmf_subsystem_get_listeners"):
            if self._is(listener["address"], address):
                # Releases from 22.05 on list a state for each ANA group.
                states = {entry["ana_state"] for entry in listener.get("ana_states", [listener])}
                return states.pop().replace("_", "-") if len(states) == 1 else "mixed"
        return None

    def set_ana(self, address, state):
        if self.ana(address) != state:
            self._call("nvmf_subsystem_listener_set_ana_state", listen_address=self._address(address),
                       ana_state=state.replace("-", "_"))

    def add(self, address):
        """Adds the listener inaccessible. Releases that cannot do that at once get the state as the very next request, before
        any host was asked to connect."""
        if self.ana(address) is not None:
            return
        try:
            self.rpc.call("nvmf_subsystem_add_listener", nqn=self.nqn, listen_address=self._address(address),
                          ana_state="inaccessible")
        except RpcError as error:
            if error.code != INVALID_PARAMETERS:
                raise failed(str(error)) from error
            self._call("nvmf_subsystem_add_listener", listen_address=self._address(address))
        try:
            self.set_ana(address, "inaccessible")
        except Problem:
            self._call("nvmf_subsystem_remove_listener", listen_address=self._address(address))
            raise

    def remove(self, address):
        if self.ana(address) is not None:
            self._call("nvmf_subsystem_remove_listener", listen_address=self._address(address))

    def connected(self, address):
        """Number of hosts' controllers with a queue pair at the listener."""
        controllers = {pair["cntlid"] for pair in self._call("nvmf_subsystem_get_qpairs") if self._is(pair["listen_address"], address)}
        if address["trtype"] == "tcp":
            # The kernel knows TCP connections that the target does not name any more.
            return max(len(controllers), tcp_peers(self.call, address))
        return len(controllers)
