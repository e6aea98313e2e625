# SPDX-License-Identifier: Apache-2.0
"""What shells do on a node's way into the fleet: the init containers' scripts, and scripts/join-nodes with a kubectl of ours."""

import os
import stat
import subprocess
import tempfile
import unittest

import chart

KUBECTL = """#!/bin/bash
all=$*
echo "$all" >> "$PLACE/calls"
case $all in
  *"get pods"*component=controller*) cat "$PLACE/controllers" ;;
  *"get pods"*component=agent*'"join"'*) cat "$PLACE/waiting" ;;
  *"get pods"*component=agent*) cat "$PLACE/working" ;;
  *"rocegw-controller join-token"*) echo "# file of ${all#* -- }"; echo "token: \"secret\""; echo "server_name: \"x\"" ;;
  *"rocegw-agent --join -") pod=$5; cat > "$PLACE/$pod.joined"; ! grep -qx "$pod" "$PLACE/refused" ;;
  *"rocegw-agent --same-fleet -") cat > "$PLACE/$5.compared"; ! grep -qx "$5" "$PLACE/strangers" ;;
esac
"""


class Shells(unittest.TestCase):

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name
        os.mkdir(self.path("bin"))

    def path(self, *names):
        return os.path.join(self.place, *names)

    def write(self, text, *names):
        os.makedirs(os.path.dirname(self.path(*names)), exist_ok=True)
        with open(self.path(*names), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, *names):
        with open(self.path(*names), encoding="utf-8") as file:
            return file.read()

    def program(self, name, text):
        self.write(text, "bin", name)
        os.chmod(self.path("bin", name), 0o755)

    def shell(self, *command, **variables):
        surroundings = {**os.environ, "PATH": self.path("bin") + ":" + os.environ["PATH"], "PLACE": self.place, **variables}
        return subprocess.run(command, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                              check=False)

    def init_container(self, example, workload, text=None, **replaced):
        """The command of its init container, with paths of a pod replaced by ours. `text`: in the place of the example."""
        rendered = text or chart.rendered(example)
        container = dict(chart.pods(chart.objects(rendered)))[workload]["spec"]["initContainers"][-1]
        (script,) = container["args"]
        for path, ours in replaced.items():
            wanted = "/" + path.replace("__", "/").replace("_", "-")
            self.assertIn(wanted, script)
            script = script.replace(wanted, ours)
        return container["command"] + [script]


class Join(Shells):

    def join(self):
        command = self.init_container("nodes-only", "rocegw-agent", var__lib__rocegw_agent=self.path("state"),
                                      etc__rocegw_join=self.path("join"))
        return self.shell(*command, NODE_NAME="node-1")

    def test_one_that_has_joined_goes_on(self):
        self.program("rocegw-agent", "#!/bin/sh\nexit 1\n")
        self.write("gateway: gateways/a\n", "state", "fleet.yaml")
        done = self.join()
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_its_own_file_is_taken(self):
        self.program("rocegw-agent", '#!/bin/sh\n[ "$1" = --join ] && cp "$2" "$PLACE/taken"\n')
        self.write("mine", "join", "node-1.yaml")
        self.write("another's", "join", "node-2.yaml")
        self.assertEqual(self.join().returncode, 0)
        self.assertEqual(self.read("taken"), "mine")

    def test_waits_until_somebody_has_joined_it(self):
        os.mkdir(self.path("state"))
        # Time passes, and meanwhile somebody joins it by kubectl exec.
        self.program("sleep", '#!/bin/sh\necho >> "$PLACE/waited"\n'
                              '[ "$(wc -l < "$PLACE/waited")" -lt 3 ] || echo joined > "$PLACE/state/fleet.yaml"\n')
        done = self.join()
        self.assertEqual(done.returncode, 0)
        self.assertIn("node-1 has not joined", done.stdout)
        self.assertEqual(self.read("waited").count("\n"), 3)

    def test_a_file_that_is_refused_is_tried_again(self):
        self.program("rocegw-agent", '#!/bin/sh\necho >> "$PLACE/tried"\n[ "$(wc -l < "$PLACE/tried")" -ge 2 ]\n')
        self.program("sleep", "#!/bin/sh\n")
        self.write("mine", "join", "node-1.yaml")
        self.assertEqual(self.join().returncode, 0)
        self.assertEqual(self.read("tried").count("\n"), 2)


class JoinByItself(Shells):

    def join(self):
        text = chart.template("--set", "image.repository=x,agent.join.automatic=true")
        command = self.init_container("", "rocegw-agent", text, var__lib__rocegw_agent=self.path("state"),
                                      etc__rocegw_join=self.path("join"), etc__rocegw_fleet=self.path("fleet"),
                                      var__run__secrets__rocegw_join=self.path("token"))
        return self.shell(*command, NODE_NAME="node-1")

    def test_the_published_file_and_the_pods_token_are_taken(self):
        self.program("rocegw-agent", '#!/bin/sh\necho "$@" > "$PLACE/called"\n')
        self.write("fleet", "fleet", "join.yaml")
        self.assertEqual(self.join().returncode, 0)
        self.assertEqual(self.read("called").split(), ["--join", self.path("fleet", "join.yaml"), "--pod-token",
                                                       self.path("token", "token")])

    def test_waits_for_the_file_and_tries_again(self):
        self.program("rocegw-agent", '#!/bin/sh\necho >> "$PLACE/tried"\n[ "$(wc -l < "$PLACE/tried")" -ge 2 ]\n')
        self.program("sleep", '#!/bin/sh\nmkdir -p "$PLACE/fleet"\necho fleet > "$PLACE/fleet/join.yaml"\n')
        self.assertEqual(self.join().returncode, 0)
        self.assertEqual(self.read("tried").count("\n"), 2)

    def test_a_join_file_of_its_own_goes_first(self):
        self.program("rocegw-agent", '#!/bin/sh\n[ "$#" = 2 ] && cp "$2" "$PLACE/taken"\n')
        self.write("fleet", "fleet", "join.yaml")
        self.write("mine", "join", "node-1.yaml")
        self.assertEqual(self.join().returncode, 0)
        self.assertEqual(self.read("taken"), "mine")


class Authority(Shells):

    def bring(self):
        return self.shell(*self.init_container("etcd", "rocegw-controller", var__lib__rocegw_controller=self.path("state"),
                                               etc__rocegw_authority=self.path("secret")))

    def test_comes_into_a_directory_for_the_controller_alone(self):
        self.write("certificate", "secret", "tls.crt")
        self.write("key", "secret", "tls.key")
        self.assertEqual(self.bring().returncode, 0)
        self.assertEqual((self.read("state", "state", "ca.crt"), self.read("state", "state", "ca.key")), ("certificate", "key"))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("state", "state")).st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("state", "state", "ca.key")).st_mode), 0o600)
        self.assertEqual(sorted(os.listdir(self.path("state", "state"))), ["ca.crt", "ca.key"])

    def test_is_not_replaced(self):
        self.write("certificate", "secret", "tls.crt")
        self.write("another key", "secret", "tls.key")
        self.write("key", "state", "state", "ca.key")
        self.assertEqual(self.bring().returncode, 0)
        self.assertEqual(self.read("state", "state", "ca.key"), "key")

    def test_is_whole_or_not_there(self):
        self.write("key", "secret", "tls.key")
        self.assertNotEqual(self.bring().returncode, 0)
        self.assertFalse(os.path.exists(self.path("state", "state", "ca.key")))


class JoinNodes(Shells):

    def setUp(self):
        super().setUp()
        self.program("kubectl", KUBECTL)
        self.write("ctl-0\n", "controllers")
        self.write("agent-a\nagent-b\n", "waiting")
        self.write("", "refused")
        self.write("", "working")
        self.write("", "strangers")

    def join_nodes(self, *arguments):
        return self.shell(os.path.join(chart.ROOT, "scripts", "join-nodes"), "--namespace", "ns", "--release", "rel", *arguments)

    def joined(self):
        return sorted(name for name in os.listdir(self.place) if name.endswith(".joined"))

    def test_each_that_waits_gets_a_file_of_its_own(self):
        done = self.join_nodes()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.joined(), ["agent-a.joined", "agent-b.joined"])
        joined = self.read("agent-a.joined")
        self.assertIn("# file of rocegw-controller join-token --lifetime 5m\n", joined)
        self.assertIn("token:", joined)
        calls = self.read("calls")
        self.assertEqual(calls.count("exec ctl-0 --container rocegw-controller -- rocegw-controller join-token"), 2)
        self.assertTrue(all(line.startswith("--namespace ns ") for line in calls.splitlines()))
        self.assertIn("instance=rel", calls)

    def test_one_that_is_refused_holds_up_nobody(self):
        self.write("agent-a\n", "refused")
        done = self.join_nodes()
        self.assertEqual(done.returncode, 1)
        self.assertIn("agent-a has not joined", done.stdout)
        self.assertEqual(self.joined(), ["agent-a.joined", "agent-b.joined"])

    def test_a_name_again_only_when_it_is_said(self):
        self.assertEqual(self.join_nodes("--again", "host-b=agent-b").returncode, 0)
        self.assertIn("--gateway host-b", self.read("agent-b.joined"))
        self.assertNotIn("--gateway", self.read("agent-a.joined"))
        self.assertEqual(self.read("calls").count("join-token"), 2)

    def test_nobody_waits(self):
        self.write("", "waiting")
        self.assertEqual(self.join_nodes().returncode, 0)
        self.assertEqual(self.joined(), [])

    def test_a_node_of_another_fleet_is_named_with_what_to_do(self):
        self.write("", "waiting")
        self.write("agent-c\nagent-d\n", "working")
        self.write("agent-d\n", "strangers")
        done = self.join_nodes()
        self.assertEqual(done.returncode, 1)
        self.assertIn("the node of agent-d holds the certificate of another fleet", done.stdout)
        self.assertIn("exec agent-d --container rocegw-agent -- rocegw-agent --leave", done.stdout)
        self.assertIn("rocegwctl fleet adopt", done.stdout)
        self.assertNotIn("agent-c", done.stdout)
        # A node that needs no token gets none: whoever reads it there could join under another name.
        for node in ("agent-c", "agent-d"):
            compared = self.read(f"{node}.compared")
            self.assertIn("server_name:", compared)
            self.assertNotIn("token:", compared)
        self.assertIn("joined now: 0, of this fleet before: 1, of another fleet: 1", done.stdout)

    def test_no_controller(self):
        self.write("", "controllers")
        done = self.join_nodes()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no controller", done.stdout)

    def test_wrong_usage(self):
        self.assertEqual(self.join_nodes("--bogus").returncode, 2)
        self.assertEqual(self.join_nodes("--again", "host-b").returncode, 2)


if __name__ == "__main__":
    unittest.main()
