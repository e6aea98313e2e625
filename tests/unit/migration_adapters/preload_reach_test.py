#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Whether the client library will reach a unit: settings of systemd as systemctl of systemd 252 shows them, ELF files of this machine
and made-up ones, below a folder in the place of the host's root."""

import os
import shutil
import socket
import struct
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "agent", "migration", "adapters")]

from rocegw_adapter import preload_reach  # noqa: E402
from rocegw_adapter.preload_reach import PreloadReach, elf_of  # noqa: E402
from rocegw_adapter.protocol import Problem  # noqa: E402
from rocegw_adapter.unit_settings import UnitSettings, belongs  # noqa: E402

LIBRARY = "/usr/lib/librocegw-verbs.so"
PRELOAD = f"LD_PRELOAD={LIBRARY} ROCEGW_SOCKET=/run/rocegw/attach.sock"
DROP_IN = "/etc/systemd/system/kv.service.d/rocegw.conf"
GLIBC = "/lib64/ld-linux-x86-64.so.2"


def elf(interpreter=GLIBC, machine=62):
    """A file with an ELF header and, if it has an interpreter, one segment that names it (elf(5))."""
    head = struct.pack("<4s5B7xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 0, 0, 3, machine, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    name = (interpreter or "").encode() + b"\0"
    return head + struct.pack("<IIQQQQQQ", 3 if interpreter else 1, 4, 120, 0, 0, len(name), len(name), 1) + name


class Host(unittest.TestCase):
    """A host with a program, the library, and the socket of a gateway."""

    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="rocegw-reach-")
        self.addCleanup(shutil.rmtree, self.root)
        self.write("/usr/bin/kv", elf(), 0o755)
        self.write("/bin/sh", elf(), 0o755)
        self.write(LIBRARY, elf(None))
        self.write("/usr/bin/rocegw-run", elf(None), 0o755)
        os.makedirs(self.path("/run/rocegw"))
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.bind(self.path("/run/rocegw/attach.sock"))
        os.chmod(self.path("/run/rocegw/attach.sock"), 0o666)
        self.shown = {"LoadState": "loaded", "Environment": PRELOAD, "MainPID": "0"}
        self.command = "/usr/bin/kv serve"
        self.planned = {}

    def path(self, name):
        return self.root + name

    def write(self, name, content, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(self.path(name), mode)

    def problem(self, unit="kv.service", **shown):
        """Outcome and text of what keeps the library away, or None."""
        path = self.command.split(" ", maxsplit=1)[0]
        lines = {"ExecStart": f"{{ path={path} ; argv[]={self.command} ; ignore_errors=no ; start_time=[n/a] }}", **self.shown, **shown}
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        try:
            PreloadReach(UnitSettings(unit, text, self.planned), self.root, self.path("/proc")).expect()
        except Problem as found:
            return found.outcome, str(found)
        return None

    def assert_failed(self, text, **shown):
        outcome, found = self.problem(**shown) or ("reached", "")
        self.assertEqual(outcome, "failed", found)
        self.assertIn(text, found)


class Environments(Host):
    def test_a_plain_unit_is_reached(self):
        self.assertIsNone(self.problem())

    def test_an_environment_without_the_library(self):
        self.assert_failed("no LD_PRELOAD with librocegw-verbs.so", Environment="LD_PRELOAD=/usr/lib/libjemalloc.so")
        self.assertIsNone(self.problem(Environment=f'A=1 "LD_PRELOAD=/usr/lib/libjemalloc.so {LIBRARY}"'))

    def test_a_file_of_the_environment_wins_and_what_is_unset_is_not_there(self):
        self.write("/etc/default/kv", "# text\nLD_PRELOAD=/usr/lib/other.so\n")
        self.assert_failed("no LD_PRELOAD", EnvironmentFiles="/etc/default/kv (ignore_errors=yes)")
        self.assert_failed("no LD_PRELOAD", UnsetEnvironment="LD_PRELOAD")
        self.assert_failed("no LD_PRELOAD", UnsetEnvironment=f"LD_PRELOAD={LIBRARY}")
        self.assertIsNone(self.problem(UnsetEnvironment="LD_PRELOAD=/usr/lib/other.so"))

    def test_the_drop_in_file_that_will_be_written_counts(self):
        self.shown["Environment"] = "A=1"
        self.planned[DROP_IN] = f"[Unit]\nEnvironment=none\n[Service]\n# text\nEnvironment={PRELOAD} \\\n B=2\n"
        self.assertIsNone(self.problem())
        # Of another unit, of no unit, and of the template.
        self.planned = {DROP_IN.replace("kv", "other"): self.planned[DROP_IN], "/etc/kv.conf": self.planned[DROP_IN]}
        self.assert_failed("no LD_PRELOAD")
        self.assertEqual(self.problem("kv@1.service")[0], "failed")
        self.planned[DROP_IN.replace("kv", "kv@")] = f"[Service]\nEnvironment={PRELOAD}\n"
        self.assertIsNone(self.problem("kv@1.service"))

    def test_a_drop_in_file_that_forgets_what_was_set(self):
        self.planned[DROP_IN] = "[Service]\nEnvironment=\n"
        self.assert_failed("no LD_PRELOAD")

    def test_a_unit_that_the_migration_makes(self):
        self.planned["/etc/systemd/system/kv.service"] = f"[Service]\nExecStart=-/usr/bin/kv serve\nEnvironment={PRELOAD}\n"
        self.assertIsNone(self.problem(LoadState="not-found", ExecStart="", Environment=""))
        del self.planned["/etc/systemd/system/kv.service"]
        self.assert_failed("kv.service is not-found", LoadState="not-found")
        self.assert_failed("kv.service is masked", LoadState="masked")

    def test_programs_that_clear_the_environment(self):
        for command, text in (("/usr/bin/sudo -u kv /usr/bin/kv", "sudo, which clears"), ("/usr/bin/env -i /usr/bin/kv", "no LD_PRELOAD"),
                              ("/usr/bin/env -u LD_PRELOAD kv", "no LD_PRELOAD"), ("/usr/bin/env LD_PRELOAD=x kv", "no LD_PRELOAD")):
            with self.subTest(command):
                self.command = command
                self.assert_failed(text)
        self.command = f"/usr/bin/env -i LD_PRELOAD={LIBRARY} /usr/bin/kv serve"
        self.assertIsNone(self.problem())

    def test_rocegw_run_needs_no_environment(self):
        self.shown["Environment"] = ""
        self.command = "/usr/bin/rocegw-run --drop-in --wait 5 -- /usr/bin/kv serve"
        self.assertIsNone(self.problem())
        self.write("/usr/bin/kv", elf(None), 0o755)
        self.assert_failed("linked statically")

    def test_rocegw_run_needs_a_socket_unless_the_gateway_is_inside(self):
        self.command = "/usr/bin/rocegw-run --socket /run/other.sock -- /usr/bin/kv"
        self.assert_failed("does not see the gateway's socket /run/other.sock")
        self.command = "/usr/bin/rocegw-run --in-process --address 192.0.2.1 -- /usr/bin/kv"
        os.remove(self.path("/run/rocegw/attach.sock"))
        self.assertIsNone(self.problem())


class Programs(Host):
    def test_programs_that_no_library_can_be_preloaded_to(self):
        for content, text in ((elf(None), "linked statically"), (elf("/lib/ld-musl-x86_64.so.1"), "is for musl"),
                              (elf("/lib/ld-linux-aarch64.so.1", 183), "another processor")):
            with self.subTest(text):
                self.write("/usr/bin/kv", content, 0o755)
                self.assert_failed(text)
        os.remove(self.path("/usr/bin/kv"))
        self.assert_failed("/usr/bin/kv: No such file")

    def test_files_of_this_machine_are_understood(self):
        bits, machine, interpreter = elf_of(os.path.realpath(sys.executable))
        self.assertEqual(bits, 2)  # ELFCLASS64
        self.assertGreater(machine, 0)
        self.assertTrue(os.path.exists(interpreter), interpreter)
        self.assertIsNone(elf_of(os.path.abspath(__file__)))

    def test_a_script_is_its_interpreter(self):
        self.write("/usr/bin/kv", "#!/bin/sh\nexec /usr/bin/other\n", 0o755)
        self.assertIsNone(self.problem())
        self.write("/bin/sh", elf("/lib/ld-musl-x86_64.so.1"), 0o755)
        self.assert_failed("/bin/sh is for musl")
        self.write("/usr/bin/kv", "text", 0o755)
        self.assertEqual(self.problem()[0], "inconclusive")

    def test_set_uid_programs(self):
        os.chown(self.path("/usr/bin/kv"), 1, 1)
        os.chmod(self.path("/usr/bin/kv"), 0o4755)
        self.assert_failed("is set-uid or set-gid", User="nobody")
        self.assert_failed("is set-uid or set-gid")
        self.assertIsNone(self.problem(User="nobody", NoNewPrivileges="yes"))
        # To be root already is no more rights.
        os.chown(self.path("/usr/bin/kv"), 0, 0)
        os.chmod(self.path("/usr/bin/kv"), 0o4755)
        self.assertIsNone(self.problem())

    def test_file_capabilities(self):
        with mock.patch.object(preload_reach.os, "getxattr", lambda path, name: b"\1"):
            self.assert_failed("has file capabilities", User="nobody")
            self.assert_failed("has file capabilities", User="nobody", NoNewPrivileges="yes")
            self.assertIsNone(self.problem())

    def test_the_kernel_runs_it_in_secure_mode(self):
        os.makedirs(self.path("/proc/4711"))
        os.symlink("/usr/bin/kv", self.path("/proc/4711/exe"))
        for secure in (0, 1):
            self.write("/proc/4711/auxv", struct.pack("<6Q", 16, 1, preload_reach.AT_SECURE, secure, 0, 0))
            self.assertEqual(self.problem(MainPID="4711") is not None, bool(secure))
        self.assert_failed("in secure mode (AT_SECURE)", MainPID="4711")
        # Another program runs today.
        self.command = "/bin/sh serve"
        self.assertIsNone(self.problem(MainPID="4711"))


class Sandboxes(Host):
    def test_system_calls(self):
        self.assertIsNone(self.problem(SystemCallFilter="accept connect recvmsg sendmsg socket"))
        self.assert_failed("SystemCallFilter refuses socket, which", SystemCallFilter="accept connect recvmsg sendmsg")
        self.assert_failed("SystemCallFilter refuses sendmsg", SystemCallFilter="~mount sendmsg:EPERM")
        self.assertIsNone(self.problem(SystemCallFilter="~mount umount2"))
        self.planned[DROP_IN] = "[Service]\nSystemCallFilter=@network-io\n"
        self.assertIsNone(self.problem(SystemCallFilter="read write"))
        self.planned[DROP_IN] = "[Service]\nSystemCallFilter=~@network-io\n"
        self.assert_failed("refuses socket, connect, sendmsg, recvmsg")

    def test_address_families(self):
        self.assert_failed("RestrictAddressFamilies refuses AF_UNIX", RestrictAddressFamilies="AF_INET AF_INET6")
        self.assert_failed("RestrictAddressFamilies refuses AF_UNIX", RestrictAddressFamilies="~AF_UNIX")
        self.assertIsNone(self.problem(RestrictAddressFamilies="~AF_NETLINK"))
        self.planned[DROP_IN] = "[Service]\nRestrictAddressFamilies=AF_UNIX\n"
        self.assertIsNone(self.problem(RestrictAddressFamilies="AF_INET AF_INET6"))

    def test_folders_that_the_unit_does_not_see(self):
        self.assert_failed("does not see the gateway's socket /run/rocegw/attach.sock: InaccessiblePaths hides /run/rocegw",
                           InaccessiblePaths="-/run/rocegw")
        self.assert_failed("the library /usr/lib/librocegw-verbs.so: TemporaryFileSystem hides /usr", TemporaryFileSystem="/usr:ro")
        self.assertIsNone(self.problem(TemporaryFileSystem="/run", BindPaths="/run/rocegw"))
        self.write("/home/kv/librocegw-verbs.so", elf(None))
        self.shown["Environment"] = "LD_PRELOAD=/home/kv/librocegw-verbs.so"
        self.assertIsNone(self.problem(ProtectHome="read-only"))
        for value in ("yes", "tmpfs"):
            self.assert_failed("ProtectHome hides /home", ProtectHome=value)

    def test_private_temporary_folders(self):
        self.write("/tmp/librocegw-verbs.so", elf(None))
        self.shown["Environment"] = "LD_PRELOAD=/tmp/librocegw-verbs.so"
        self.assert_failed("PrivateTmp hides /tmp", PrivateTmp="yes")
        self.assert_failed("PrivateTmp hides /tmp", DynamicUser="yes")

    def test_another_root(self):
        self.assert_failed("does not see the library", RootDirectory="/srv/kv")
        self.write("/srv/kv/usr/bin/kv", elf(), 0o755)
        self.assertIsNone(self.problem(RootDirectory="/srv/kv", BindReadOnlyPaths="/usr/lib:/usr/lib:rbind", BindPaths="/run/rocegw"))
        self.assertEqual(self.problem(RootImage="/srv/kv.raw")[0], "inconclusive")

    def test_a_socket_that_the_user_may_not_use(self):
        os.chmod(self.path("/run/rocegw/attach.sock"), 0o660)
        self.assertIsNone(self.problem())
        self.assert_failed("runs as nobody, who may not use the gateway's socket", User="nobody")
        self.assert_failed("runs as a dynamic user", DynamicUser="yes")
        os.chown(self.path("/run/rocegw/attach.sock"), 0, 12)
        self.assertIsNone(self.problem(User="nobody", SupplementaryGroups="12"))

    def test_apparmor(self):
        self.write("/sys/kernel/security/apparmor/profiles", "/usr/bin/kv (enforce)\nother (complain)\n")
        self.write("/etc/apparmor.d/usr.bin.kv", "/usr/bin/kv { /usr/lib/kv/** r, }\n")
        outcome, text = self.problem()
        self.assertEqual(outcome, "inconclusive")
        self.assertIn("AppArmor confines /usr/bin/kv", text)
        self.write("/etc/apparmor.d/local/usr.bin.kv", f"{LIBRARY} mr,\n/run/rocegw/attach.sock rw,\n")
        self.assertIsNone(self.problem())
        self.assertIsNone(self.problem(AppArmorProfile="other"))


class Containers(Host):
    def test_what_the_command_line_gives_the_container(self):
        self.write("/usr/bin/podman", elf(), 0o755)
        run = "/usr/bin/podman run --rm"
        for more, text in (("", "no LD_PRELOAD"), (f"-e LD_PRELOAD={LIBRARY}", "no volume with the library"),
                           (f"--env=LD_PRELOAD={LIBRARY} -v /opt/rocegw:/usr/lib:ro", "no volume with the gateway's socket")):
            self.command = f"{run} {more} image"
            self.assert_failed(text)
        self.command = f"{run} --env LD_PRELOAD={LIBRARY} --volume /usr/lib --mount type=bind,src=/run/rocegw,target=/run/rocegw image"
        self.assertIsNone(self.problem())
        # The variable of the unit, handed on.
        self.command = f"{run} -e LD_PRELOAD -v /usr/lib -v /run/rocegw image"
        self.assertIsNone(self.problem())

    def test_what_cannot_be_known_is_said(self):
        for command in (f"/usr/bin/docker run -e LD_PRELOAD={LIBRARY} -v /usr/lib -v /run/rocegw image", "/usr/bin/podman start -a kv",
                        "/usr/bin/systemd-nspawn -b"):
            self.command = command
            self.assertEqual(self.problem()[0], "inconclusive")


class Places(unittest.TestCase):
    def test_files_that_belong_to_a_unit(self):
        self.assertEqual(belongs(DROP_IN, "kv.service"), "drop-in")
        self.assertEqual(belongs("/usr/lib/systemd/system/kv@.service", "kv@1.service"), "unit")
        for path in (DROP_IN.replace(".conf", ".txt"), "/etc/kv.service", DROP_IN.replace("kv", "kv@")):
            self.assertEqual(belongs(path, "kv.service"), "")


if __name__ == "__main__":
    unittest.main()
