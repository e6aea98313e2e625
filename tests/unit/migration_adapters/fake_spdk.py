# SPDX-License-Identifier: Apache-2.0
"""SPDK's NVMe-oF target as far as the adapter sees it: the JSON-RPC methods of listeners, and the I/O paths of one Linux host
that is connected to them. Not recorded: made after SPDK's documentation of its JSON-RPC."""

import json
import socketserver
import threading

NQN = "nqn.2016-06.io.spdk:cnode1"
INVALID_PARAMETERS, METHOD_NOT_FOUND = -32602, -32601


class FakeSpdk:
    """`groups`: ANA groups that listeners list, 0 for releases that list one state. `new`: whether a listener can be added
    with its ANA state."""

    def __init__(self, path, groups=2, new=True):
        self.groups = groups
        self.new = new
        self.listeners = []      # {"address": {...}, "ana": "optimized"}
        self.connections = {}    # (trtype, traddr, trsvcid) to the number of the controller
        self.bytes = {"tcp": 0, "rdma": 0}
        self.was_optimized = []  # addresses of listeners at each moment when they were optimized
        self.calls = []
        self.reconnecting = set()       # transports whose path of the host is dead
        self.lists_reconnecting = True  # whether the host lists such a path for a device
        self.others = {}                # ANA group to the state that it has in place of its listener's
        self.stale = {}                 # transport to the ANA state that the host still knows
        target = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                while piece := self.request.recv(65536):
                    self.request.sendall(json.dumps(target.answer(json.loads(piece))).encode())

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

        self.server = Server(path, Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request):
        method, parameters = request["method"], request["params"]
        self.calls.append(method)
        frame = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            result = getattr(self, method)(**parameters)
        except AttributeError:
            return {**frame, "error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}}
        except (TypeError, KeyError, StopIteration):
            return {**frame, "error": {"code": INVALID_PARAMETERS, "message": "Invalid parameters"}}
        return {**frame, "result": result}

    def _listener(self, address):
        return next(each for each in self.listeners if each["address"] == address)

    # SPDK's methods ---------------------------------------------------------------------------------------------------

    def nvmf_get_subsystems(self):
        return [{"nqn": NQN, "subtype": "NVMe", "namespaces": [{"nsid": 1, "name": "Malloc0"}]}]

    def nvmf_subsystem_get_listeners(self, nqn):
        assert nqn == NQN
        if self.groups:
            return [{"address": each["address"], "ana_states": [{"ana_group": group + 1, "ana_state": self.others.get(group + 1, each["ana"])}
                                                                for group in range(self.groups)]} for each in self.listeners]
        return [{"address": each["address"], "ana_state": each["ana"]} for each in self.listeners]

    def nvmf_subsystem_add_listener(self, nqn, listen_address, **more):
        assert nqn == NQN
        if more and (not self.new or set(more) != {"ana_state"}):
            raise TypeError
        self.listeners.append({"address": listen_address, "ana": more.get("ana_state", "optimized")})
        return True

    def nvmf_subsystem_listener_set_ana_state(self, nqn, listen_address, ana_state):
        assert nqn == NQN and ana_state in ("optimized", "non_optimized", "inaccessible")
        self._listener(listen_address)["ana"] = ana_state
        return True

    def nvmf_subsystem_remove_listener(self, nqn, listen_address):
        assert nqn == NQN
        self.listeners.remove(self._listener(listen_address))
        return True

    def nvmf_subsystem_get_qpairs(self, nqn):
        assert nqn == NQN
        return [{"cntlid": number + 1, "qid": qid, "state": "active", "listen_address": listener["address"]}
                for key, number in self.connections.items() for listener in self.listeners if key == _key(listener["address"])
                for qid in (0, 1)]

    # The host ---------------------------------------------------------------------------------------------------------

    def host(self, words):
        """Output of a command, or None when it fails."""
        if words[:2] == ["nvme", "list-subsys"]:
            return json.dumps(self._list(device=len(words) == 5))
        if words[:2] == ["nvme", "connect"]:
            value = dict(zip(words[2::2], words[3::2]))
            self.connections[value["-t"], value["-a"], value["-s"]] = max(self.connections.values(), default=-1) + 1
            return ""
        if words[:2] == ["nvme", "disconnect"]:
            self.connections = {key: number for key, number in self.connections.items() if f"nvme{number}" != words[3]}
            return ""
        if words[0] == "ls":
            return "nvme0 nvme1 nvme0n1 ng0n1 iopolicy"
        if words[0] == "cat" and words[1].endswith("/inflight"):
            return "       0        0"
        if words[0] == "dd":
            optimized = [each for each in self.listeners if each["ana"] == "optimized" and _key(each["address"]) in self.connections]
            self.bytes[optimized[0]["address"]["trtype"].lower()] += 1 << 20
            return ""
        if words[0] == "bytes":
            return f"{self.bytes['rdma']} {self.bytes['tcp']}"
        return None

    def _list(self, device):
        paths = []
        for (trtype, traddr, trsvcid), number in self.connections.items():
            ana = next((each["ana"] for each in self.listeners if _key(each["address"]) == (trtype, traddr, trsvcid)), None)
            ana = self.stale.get(trtype, ana)
            dead = ana is None or trtype in self.reconnecting
            if device and dead and not self.lists_reconnecting:
                continue
            path = {"Name": f"nvme{number}", "Transport": trtype, "Address": f"traddr={traddr},trsvcid={trsvcid}",
                    "State": "connecting" if dead else "live"}
            paths.append({**path, "ANAState": (ana or "inaccessible").replace("_", "-")} if device else path)
        return [{"HostNQN": "nqn.2014-08.org.nvmexpress:uuid:1", "HostID": "1",
                 "Subsystems": [{"Name": "nvme-subsys0", "NQN": NQN, "Paths": paths}]}]


def _key(address):
    return address["trtype"].lower(), address["traddr"], address["trsvcid"]
