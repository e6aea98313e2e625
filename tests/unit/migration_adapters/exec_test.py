#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The adapter exec, as a process: which program it calls, and what it makes of the program's answers."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ADAPTER = os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters", "exec.py")
EXAMPLE = os.path.join(HERE, "..", "..", "..", "examples", "migration", "file_adapter.py")


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rocegw-exec-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.program = os.path.join(self.folder, "program")
        self.describe({"program": [self.program, "word"]})

    def describe(self, text):
        with open(os.path.join(self.folder, "c1.json"), "w", encoding="utf-8") as file:
            json.dump(text, file)

    def write(self, script, mode=0o755):
        with open(self.program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script + "\n")
        os.chmod(self.program, mode)

    def ask(self, call="health", **more):
        request = {"protocol": 1, "id": "7", "call": call, "cluster": "c1", "node": "h1", "from": "tcp", "to": "gateway",
                   "deadline_seconds": 20, **more}
        done = subprocess.run([ADAPTER], input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=60, check=True,
                              env={**os.environ, "ROCEGW_EXEC_DIR": self.folder})
        self.assertEqual(done.stdout.count("\n"), 1)
        return json.loads(done.stdout)

    def test_the_request_and_the_answer_pass_unchanged(self):
        """The program gets its argument and the very line; here it hands the request's id and node back."""
        self.write("""read line; [ "$1" = word ] && echo "$line" |
            sed 's/.*"id": "\\([0-9]*\\)".*"node": "\\([a-z0-9]*\\)".*/{"protocol": 1, "id": "\\1", "outcome": "done", "text": "\\2"}/'""")
        self.assertEqual(self.ask(), {"protocol": 1, "id": "7", "outcome": "done", "text": "h1"})

    def test_the_inventory_names_the_adapter_that_agents_call(self):
        self.write("""echo '{"cluster": "c1", "adapter": "files", "class": "dual-path", "nodes": []}'""")
        self.assertEqual(self.ask("inventory")["adapter"], "exec")
        self.write("""echo '{"protocol": 1, "id": "7", "adapter": "files", "version": "3", "calls": ["health"]}'""")
        self.assertEqual(self.ask("hello"), {"protocol": 1, "id": "7", "adapter": "exec", "version": "3", "calls": ["health"]})

    def test_an_answer_that_is_not_understood_decides_nothing(self):
        for script in ("true", "echo done", "echo '[1]'", "printf '{}'", "echo '{}'; echo '{}'", "echo '{}'; exit 3"):
            with self.subTest(script):
                self.write(script)
                answered = self.ask()
                self.assertEqual((answered["outcome"], answered["id"]), ("inconclusive", "7"))

    def test_a_program_that_hangs_fails(self):
        self.write("exec sleep 60")
        self.assertEqual(self.ask(deadline_seconds=1)["text"], "the program did not end in time")

    def test_programs_that_are_not_run(self):
        """What another user may change would run with the rights of the agent."""
        self.write("echo '{}'", 0o777)
        self.assertIn("can be changed by other users", self.ask()["text"])
        self.write("echo '{}'", 0o644)
        self.assertIn("is no program", self.ask()["text"])
        for text, reason in (({"program": ["program"]}, "no absolute path"), ({"program": []}, "no list of words"),
                             ({"program": "/bin/true"}, "no list of words"), ({"program": ["/nowhere/x"]}, "No such file"),
                             ({"programs": ["/bin/true"]}, "not understood: programs")):
            with self.subTest(reason):
                self.describe(text)
                answered = self.ask()
                self.assertEqual(answered["outcome"], "failed")
                self.assertIn(reason, answered["text"])
        self.assertIn("c2.json", self.ask(cluster="c2")["text"])
        self.assertEqual(self.ask(cluster="../c1")["text"], "this is no name of a cluster")

    def test_the_example_is_reached_by_it(self):
        """A whole adapter behind it: examples/migration/file_adapter.py."""
        os.makedirs(os.path.join(self.folder, "nodes", "n1"))
        target = os.path.join(self.folder, "adapter")
        shutil.copy(EXAMPLE, target)
        os.chmod(target, 0o755)
        self.describe({"program": [target, os.path.join(self.folder, "nodes")]})
        self.assertIn("switch", self.ask("hello")["calls"])
        self.assertEqual(self.ask("no-such-call", node="n1")["outcome"], "failed")


if __name__ == "__main__":
    unittest.main()
