# SPDX-License-Identifier: Apache-2.0
"""Finds whether the client library will reach the processes of a systemd unit after a migration, before anything is changed. Looks at
the unit's settings, at the files that the migration will write, at the program, and at the process that runs. Starts and changes
nothing. docs/user/programs.md lists which programs the library cannot reach, ld.so(8) what the loader ignores."""

import grp
import os
import pwd
import re
import stat
import struct

from .protocol import failed, inconclusive
from .unit_settings import UnitSettings, show_words

LIBRARY = "librocegw-verbs.so"
SOCKET = "/run/rocegw/attach.sock"
CALLS = ("socket", "connect", "sendmsg", "recvmsg")  # with AF_UNIX: without them a program finds no device
CALL_SETS = ("@network-io", "@system-service")
SEARCHED = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
# Containers of others are no processes of the unit that starts them.
CONTAINERS_UNKNOWN = {"docker", "nerdctl", "systemd-nspawn", "runc", "crun", "lxc-start", "apptainer", "singularity", "flatpak", "bwrap", "ctr",
                      "docker-compose", "podman-compose", "machinectl"}
CLEARING = {"sudo", "su", "doas", "pkexec", "runuser"}
RUN_FLAGS = {"--drop-in", "--in-process", "--run-in-poll", "--placement", "--far-report"}  # of rocegw-run; others have a value
AT_SECURE = 23
PT_INTERP = 3


def _under(path, folder):
    """Whether a path is a folder, or lies in it."""
    return os.path.commonpath([os.path.normpath(path), os.path.normpath(folder)]) == os.path.normpath(folder)


def elf_of(path):
    """(class, machine, interpreter) of an ELF file; the interpreter is None in a program that is linked statically. None: it is no
    ELF file."""
    with open(path, "rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:4] != b"\x7fELF":
            return None
        bits, order = head[4], "<" if head[5] == 1 else ">"
        machine = struct.unpack_from(order + "H", head, 18)[0]
        if bits != 2:
            return bits, machine, None
        start, = struct.unpack_from(order + "Q", head, 32)
        size, count = struct.unpack_from(order + "HH", head, 54)
        for number in range(count):
            file.seek(start + number * size)
            segment = file.read(size)
            if struct.unpack_from(order + "I", segment)[0] == PT_INTERP:
                offset, = struct.unpack_from(order + "Q", segment, 8)
                length, = struct.unpack_from(order + "Q", segment, 32)
                file.seek(offset)
                return bits, machine, file.read(length).rstrip(b"\0").decode(errors="replace")
        return bits, machine, None


class PreloadReach:
    """One unit. `root` and `proc` are folders of the host; tests give others."""

    def __init__(self, settings, root="/", proc="/proc"):
        self.settings = settings
        self.unit = settings.unit
        self.root = root
        self.proc = proc
        self.environment = settings.environment(self._read)

    # The host's files -------------------------------------------------------------------------------------------------

    def _host(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def _inside(self, path):
        """Path on the host of a file that the unit sees by another one."""
        for source, target in self._bindings():
            if _under(path, target):
                return self._host(source + path[len(target.rstrip("/")):])
        return self._host(self.settings.text("RootDirectory") + path)

    def _bindings(self):
        """Source and target of each bind mount of the unit."""
        for word in (*self.settings.words("BindPaths"), *self.settings.words("BindReadOnlyPaths")):
            parts = word.lstrip("-+").split(":")
            yield parts[0], parts[1] if len(parts) > 1 else parts[0]

    def _read(self, path):
        try:
            with open(self._host(path), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    # Commands ---------------------------------------------------------------------------------------------------------

    def expect(self):
        """Fails with the reason for which the library will not reach the unit. Inconclusive: it cannot be known before."""
        settings = self.settings
        if settings.text("LoadState") not in ("", "loaded"):
            raise failed(f"{self.unit} is {settings.text('LoadState')}")
        if settings.text("RootImage"):
            raise inconclusive(f"{self.unit} has RootImage={settings.text('RootImage')}, into which nobody looks before it runs")
        commands = settings.commands()
        if not commands:
            raise failed(f"{self.unit} has no ExecStart")
        for words in commands:
            self._expect_command(words, dict(self.environment))
        self._expect_sandbox()

    def _expect_command(self, words, environment):
        name = os.path.basename(words[0])
        if name in CLEARING:
            raise failed(f"{self.unit} starts its program by {name}, which clears the environment: use User= in the unit, or rocegw-run "
                         f"behind {name}")
        if name in CONTAINERS_UNKNOWN:
            raise inconclusive(f"{self.unit} starts a container by {name}, into which nobody looks before it runs")
        if name == "podman":
            self._expect_container(words[1:])
        elif name == "env":
            self._expect_env(words[1:], environment)
        elif name == "rocegw-run":
            self._expect_rocegw_run(words[1:], environment)
        else:
            library = self._expect_library(environment)
            self._expect_program(words[0], library)
            self._expect_process(words[0])
            self._expect_apparmor(words[0], [library, environment.get("ROCEGW_SOCKET", SOCKET)])

    def _expect_env(self, words, environment):
        """env(1): options, assignments, the program."""
        while words and (words[0].startswith("-") or "=" in words[0]):
            word, words = words[0], words[1:]
            if word in ("-i", "-", "--ignore-environment"):
                environment.clear()
            elif word in ("-u", "--unset", "-C", "--chdir"):
                if word in ("-u", "--unset"):
                    environment.pop(words[0], None)
                words = words[1:]
            elif word.startswith(("--unset=", "-u")):
                environment.pop(word.partition("=")[2] or word[2:], None)
            elif not word.startswith("-"):
                environment[word.partition("=")[0]] = word.partition("=")[2]
        if not words:
            raise failed(f"{self.unit} starts env without a program")
        self._expect_command(words, environment)

    def _expect_rocegw_run(self, words, environment):
        """rocegw-run sets up the environment. What it refuses, it would refuse when the unit starts."""
        own_gateway, socket = False, environment.get("ROCEGW_SOCKET", SOCKET)
        while words and words[0].startswith("-"):
            word, words = words[0], words[1:]
            if word == "--":
                break
            own_gateway |= word == "--in-process"
            if word not in RUN_FLAGS:
                socket = words[0] if word == "--socket" and words else socket
                words = words[1:]
        if not words:
            raise failed(f"{self.unit} starts rocegw-run without a program")
        self._expect_program(words[0], None)
        if not own_gateway:
            self._expect_seen(socket, "the gateway's socket")
        self._expect_process(words[0])

    def _expect_container(self, words):
        """A container gets what its command line gives it: the environment, and both folders."""
        if "run" not in words:
            raise inconclusive(f"{self.unit} starts its container by podman, but not by podman run: its settings are not in the unit")
        environment, volumes = {}, []
        for number, word in enumerate(words):
            option, _, value = word.partition("=") if word.startswith("--") else (word, "", "")
            following = words[number + 1] if number + 1 < len(words) else ""
            value = value or following
            if option in ("-e", "--env"):
                environment[value.partition("=")[0]] = value.partition("=")[2] or self.environment.get(value.partition("=")[0], "")
            elif option in ("-v", "--volume"):
                volumes.append((value.split(":") * 2)[1])
            elif option == "--mount":
                volumes += re.findall(r"(?:target|dst|destination)=([^,]+)", value)
        library = self._library_of(environment)
        if library is None:
            raise failed(f"{self.unit}: podman run gives its container no LD_PRELOAD with {LIBRARY} (--env)")
        for path, what in ((library, "the library"), (environment.get("ROCEGW_SOCKET", SOCKET), "the gateway's socket")):
            if not any(_under(path, volume) for volume in volumes):
                raise failed(f"{self.unit}: podman run gives its container no volume with {what} {path} (--volume)")

    # The program ------------------------------------------------------------------------------------------------------

    @staticmethod
    def _library_of(environment):
        return next((path for path in re.split("[ :]", environment.get("LD_PRELOAD", "")) if os.path.basename(path) == LIBRARY), None)

    def _expect_library(self, environment):
        library = self._library_of(environment)
        if library is None:
            raise failed(f"{self.unit} will have no LD_PRELOAD with {LIBRARY}: neither its environment nor its command has it")
        if not library.startswith("/"):
            raise failed(f"{self.unit}: LD_PRELOAD={library} is no absolute path")
        self._expect_seen(library, "the library")
        self._expect_seen(environment.get("ROCEGW_SOCKET", SOCKET), "the gateway's socket")
        return library

    def _expect_program(self, name, library):
        path = name if name.startswith("/") else \
            next((f"{folder}/{name}" for folder in SEARCHED if os.path.exists(self._inside(f"{folder}/{name}"))), name)
        found = self._inside(path)
        try:
            elf, state = elf_of(found), os.stat(found)
            interpreted = None
            if elf is None:
                with open(found, "rb") as script:
                    interpreted = re.match(rb"#!\s*(\S+)", script.readline(256))
        except OSError as error:
            raise failed(f"{self.unit}: {path}: {error.strerror}") from error
        if elf is None:
            if interpreted is None:
                raise inconclusive(f"{self.unit}: {path} is neither an ELF file nor a script")
            self._expect_program(interpreted.group(1).decode(), library)
            return
        bits, machine, interpreter = elf
        wanted = elf_of(self._inside(library)) if library else None
        if wanted and (bits, machine) != wanted[:2]:
            raise failed(f"{self.unit}: {path} is for another processor or word size than {library}")
        if interpreter is None:
            raise failed(f"{self.unit}: {path} is linked statically: no library can be preloaded")
        if "musl" in interpreter:
            raise failed(f"{self.unit}: {path} is for musl ({interpreter}), the library for glibc")
        self._expect_no_privileges(path, found, state)

    def _expect_no_privileges(self, path, found, state):
        """The loader ignores LD_PRELOAD in programs that get more rights than their caller. The kernel ignores set-uid bits, but not
        file capabilities, where NoNewPrivileges is set (bprm_fill_uid, cap_bprm_creds_from_file)."""
        settings = self.settings
        as_other = state.st_mode & stat.S_ISUID and (state.st_uid != 0 or not settings.is_root())
        if (as_other or state.st_mode & stat.S_ISGID) and not settings.is_on("NoNewPrivileges"):
            raise failed(f"{self.unit}: {path} is set-uid or set-gid: the loader ignores LD_PRELOAD")
        try:
            has_capabilities = bool(os.getxattr(found, "security.capability"))
        except OSError:
            has_capabilities = False
        if has_capabilities and not settings.is_root():
            raise failed(f"{self.unit}: {path} has file capabilities: the loader ignores LD_PRELOAD (give the unit AmbientCapabilities "
                         "instead)")

    def _expect_process(self, name):
        """The kernel's own word, where the same program runs already: AT_SECURE is set for any reason, a security module's too."""
        pid = self.settings.text("MainPID")
        try:
            if os.path.basename(os.readlink(os.path.join(self.proc, pid, "exe"))) != os.path.basename(name):
                return
            with open(os.path.join(self.proc, pid, "auxv"), "rb") as file:
                auxiliary = file.read()
        except OSError:
            return
        for kind, value in struct.iter_unpack("QQ", auxiliary[:len(auxiliary) // 16 * 16]):
            if kind == AT_SECURE and value:
                raise failed(f"{self.unit}: the kernel runs {name} in secure mode (AT_SECURE): the loader ignores LD_PRELOAD")

    def _expect_apparmor(self, program, paths):
        profile = self.settings.text("AppArmorProfile").lstrip("-")
        for line in (self._read("/sys/kernel/security/apparmor/profiles") or "").splitlines():
            name, _, mode = line.rpartition(" (")
            if mode == "enforce)" and name in (profile, program):
                missing = [path for path in paths if path not in self._apparmor_text(name)]
                if missing:
                    raise inconclusive(f"{self.unit}: AppArmor confines {program} by {name}, whose file does not name "
                                       f"{' and '.join(missing)}: allow them (mr, rw)")

    def _apparmor_text(self, profile):
        """Files of /etc/apparmor.d that name the profile, with the site's additions."""
        folder, texts = "/etc/apparmor.d", []
        names = sorted(os.listdir(self._host(folder))) if os.path.isdir(self._host(folder)) else []
        for name in names:
            text = self._read(f"{folder}/{name}") or ""
            if profile in text:
                texts += [text, self._read(f"{folder}/local/{name}") or ""]
        return "\n".join(texts)

    # The unit's sandbox -----------------------------------------------------------------------------------------------

    def _hiding(self):
        """Folders that the unit does not see, by the setting that hides them."""
        settings = self.settings
        for name in ("InaccessiblePaths", "TemporaryFileSystem"):
            for word in settings.words(name):
                yield name, word.lstrip("-+").partition(":")[0]
        if settings.is_on("ProtectHome") or settings.text("ProtectHome") == "tmpfs":
            yield from (("ProtectHome", folder) for folder in ("/home", "/root", "/run/user"))
        if settings.is_on("PrivateTmp") or settings.is_on("DynamicUser"):
            yield from (("PrivateTmp", folder) for folder in ("/tmp", "/var/tmp"))

    def _expect_seen(self, path, what):
        bound = any(_under(path, target) for _, target in self._bindings())
        for name, folder in self._hiding():
            if _under(path, folder) and not bound:
                raise failed(f"{self.unit} does not see {what} {path}: {name} hides {folder}")
        found = self._inside(path)
        try:
            state = os.stat(found)
        except OSError as error:
            raise failed(f"{self.unit} does not see {what} {path}: {error.strerror}") from error
        if not self._may(state, 2 if stat.S_ISSOCK(state.st_mode) else 4):
            raise failed(f"{self.unit} runs as {self.settings.text('User') or 'a dynamic user'}, who may not use {what} {path}")

    def _may(self, state, bit):
        """Whether the mode of a file gives the unit's user a right (4 read, 2 write)."""
        settings = self.settings
        if settings.is_root():
            return True
        groups = set()
        for name in settings.words("SupplementaryGroups"):
            try:
                groups.add(int(name) if name.isdigit() else grp.getgrnam(name).gr_gid)
            except KeyError:
                continue
        try:
            name = settings.text("User")
            user = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
        except KeyError:  # a dynamic user, or one that this host does not know yet
            user = None
        if user is not None:
            groups |= set(os.getgrouplist(user.pw_name, user.pw_gid))
            if state.st_uid == user.pw_uid:
                return bool(state.st_mode & bit << 6)
        return bool(state.st_mode & (bit << 3 if state.st_gid in groups else bit))

    def _expect_sandbox(self):
        refused = self.settings.filtered("SystemCallFilter", CALLS, CALL_SETS)
        if refused:
            raise failed(f"{self.unit}: SystemCallFilter refuses {', '.join(refused)}, which the library needs")
        if self.settings.filtered("RestrictAddressFamilies", ("AF_UNIX",)):
            raise failed(f"{self.unit}: RestrictAddressFamilies refuses AF_UNIX, by which the library reaches the gateway")


def expect_reach(call, units, files, proc="/proc"):
    """Fails for the first of the units that the library will not reach. `files`: source of each file that the migration will write,
    by its path; None, or one that is not there: the migration will remove the file."""
    planned = {}
    for path, source in files.items():
        planned[path] = None
        if source is not None and os.path.exists(source):
            with open(source, encoding="utf-8", errors="replace") as file:
                planned[path] = file.read()
    for unit in units:
        shown = call.must(show_words(unit), "systemctl show")
        PreloadReach(UnitSettings(unit, shown, planned), proc=proc).expect()
