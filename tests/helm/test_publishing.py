# SPDX-License-Identifier: Apache-2.0
"""scripts/publish-image with a docker of the test's, in a repository of the test's."""

import os
import shutil
import subprocess
import unittest

import chart
from test_joining import Shells

DOCKER = """#!/bin/bash
echo "$*" >> "$PLACE/calls"
case $* in
  *"imagetools inspect"*) grep -qxF "${!#}" "$PLACE/there" ;;
  *"buildx build"*)
    while [ $# -gt 0 ]; do [ "$1" != --metadata-file ] || echo '{ "containerimage.digest": "sha256:ab12" }' > "$2"; shift; done ;;
esac
"""


class Publishing(Shells):

    def setUp(self):
        super().setUp()
        self.program("docker", DOCKER)
        self.write("", "there")
        self.write("project(rocegw VERSION 0.1.0 LANGUAGES C)\n", "tree", "CMakeLists.txt")
        os.mkdir(self.path("tree", "scripts"))
        shutil.copy(os.path.join(chart.ROOT, "scripts", "publish-image"), self.path("tree", "scripts"))
        self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "a")

    def git(self, *arguments):
        return subprocess.run(["git", "-C", self.path("tree"), *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout

    def publish(self, *arguments):
        return self.shell(self.path("tree", "scripts", "publish-image"), *arguments)

    def test_both_images_are_pushed_and_the_digest_is_told(self):
        commit = self.git("rev-parse", "--short=12", "HEAD").strip()
        done = self.publish("registry.example.org/rocegw")
        self.assertEqual(done.returncode, 0, done.stdout)
        tag = f"0.1.0-{commit}"
        self.assertTrue(done.stdout.endswith(f"image.repository=registry.example.org/rocegw,image.tag={tag},image.digest=sha256:ab12\n"),
                        done.stdout)
        builds = [line for line in self.read("calls").splitlines() if "buildx build" in line]
        self.assertEqual([line.split("--target ")[1].split()[0] for line in builds], ["client", "daemons"])
        self.assertTrue(all("--push" in line for line in builds))
        self.assertIn(f"--tag registry.example.org/rocegw-client:{tag}", builds[0])

    def test_a_tag_that_is_there_is_not_replaced(self):
        self.write("r.example.org/rocegw-client:1\n", "there")
        done = self.publish("r.example.org/rocegw", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is there already", done.stdout)
        self.assertNotIn("buildx build", self.read("calls"))

    def test_changes_that_are_not_committed_are_refused(self):
        self.write("x", "tree", "new")
        done = self.publish("r.example.org/rocegw")
        self.assertEqual(done.returncode, 1)
        self.assertFalse(os.path.exists(self.path("calls")))

    def test_wrong_usage(self):
        for arguments in ((), ("--help",), ("a", "b", "c")):
            self.assertEqual(self.publish(*arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
