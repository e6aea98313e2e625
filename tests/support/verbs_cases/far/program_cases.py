# SPDX-License-Identifier: Apache-2.0
"""Cases of remote memory of programs that do not know of it: rocegw-run --far on the left host, donors on the right one."""

import hashlib
import os
import random
import re
import sys
import tempfile

from netlab.fleet import eventually

from ..case import Case, expect
from .load_cases import MIB, far_donors
from .own_gateway_cases import kill_gateway, stop_gateway

_REPORT = re.compile(r"^rocegw-far: at most (\d+) MiB mapped, (\d+) faults, (\d+) pages read, (\d+) written, (\d+) lost", re.MULTILINE)
# Large lists and dictionaries, which the interpreter grows by realloc, and a byte array; the sum says whether all was right.
_PYTHON = """
import hashlib
data = bytearray(6 << 20)
for at in range(0, len(data), 4096): data[at:at + 8] = (at * 7919).to_bytes(8, "little")
numbers = [each * 3 for each in range(150000)]
table = {each: numbers[each] for each in range(0, 150000, 3)}
digest = hashlib.sha256(data)
for each in range(0, 150000, 1009): digest.update(str((numbers[each], table.get(each))).encode())
print(digest.hexdigest())
"""

# Grows a byte array by small steps, each a realloc: no other block is large.
_GROWING = """
import hashlib
data, at = bytearray(), 0
while len(data) < 24 << 20:
    data += at.to_bytes(8, "little") * 512
    at += 7919
digest = hashlib.sha256()
for at in range(0, len(data), 65536): digest.update(data[at:at + 64])
print(digest.hexdigest())
"""


def _start_far(host, donors, words, *options):
    command = ["env", f"ROCEGW_SOCKET={host.attach_socket}", host.launcher[0], "--far", "0.75", "--far-size", "96MiB", "--far-least", "512KiB", "--far-report"]
    for donor in donors:
        command += ["--far-donor", f"{donor.host.address4}:{donor.port}"]
    return host.start_plain([*command, *options, "--", *words])


def _run_far(host, donors, words, *options):
    """Output and counts of a program that ended well."""
    job = _start_far(host, donors, words, *options)
    status = job.wait(120)
    expect(status == 0, f"{words[0]} ended with {status}:\n{job.output[-2000:]}")
    report = _REPORT.search(job.output)
    expect(report, f"{words[0]} has used no remote memory:\n{job.output[-2000:]}")
    mapped, _, read, written, lost = map(int, report.groups())
    expect(written > 0 and lost == 0, f"{words[0]}: {report.group(0)}")
    return _REPORT.sub("", job.output), f"{os.path.basename(words[0])}: {mapped} MiB, {read} pages read, {written} written"


def _calls(pair):
    """far_program does what programs do with memory, alone and with half of it elsewhere."""
    alone = pair.left.run_plain([pair.left.program("far_program")])
    expect("all is as it must be" in alone, alone)
    with far_donors(pair.right, 2, mebibytes=128) as donors:
        output, note = _run_far(pair.left, donors, [pair.left.program("far_program")], "--far-replicas", "2")
        expect("all is as it must be" in output, output)
        # Leases of a program that ends without a word last until they expire, unless others need the memory.
        donors[0].expect_free(30)
    return note


def _programs(pair):
    """sort and python3 do the same as without remote memory."""
    notes = []
    with tempfile.TemporaryDirectory(prefix="far-program-") as directory, far_donors(pair.right, 1, mebibytes=128) as donors:
        chance, lines = random.Random(1), f"{directory}/lines"
        with open(lines, "w", encoding="ascii") as file:
            for _ in range(100000):
                file.write(f"{chance.getrandbits(160):040x}\n")
        with open(lines, encoding="ascii") as file:
            expected = hashlib.sha256("".join(sorted(file)).encode()).hexdigest()
        _, note = _run_far(pair.left, donors, ["env", "LC_ALL=C", "sort", "-S", "12M", "-o", f"{directory}/sorted", lines])
        notes.append(note)
        with open(f"{directory}/sorted", "rb") as file:
            expect(hashlib.file_digest(file, "sha256").hexdigest() == expected, "sort sorts otherwise with remote memory")
        alone = pair.left.run_plain([sys.executable, "-c", _PYTHON])
        output, note = _run_far(pair.left, donors, [sys.executable, "-c", _PYTHON])
        expect(alone.strip() in output, f"python computes otherwise: {output}")
        notes.append(note)
    return "; ".join(notes)


def _grows(pair):
    """A block that realloc grows to a large one is remote, and holds what it held."""
    alone = pair.left.run_plain([sys.executable, "-c", _GROWING])
    with far_donors(pair.right, 1, mebibytes=128) as donors:
        output, note = _run_far(pair.left, donors, [sys.executable, "-c", _GROWING])
    expect(alone.strip() in output, f"python computes otherwise: {output}")
    mapped = int(re.search(r": (\d+) MiB", note).group(1))
    expect(mapped >= 24, f"the array is not remote: {note}")
    return note


def _donor_killed(pair):
    """With two replicas a program does not notice that a donor dies; without one it gets SIGBUS, and never a wrong byte."""
    script = _PYTHON.replace("numbers =", "print('filled', flush=True); import time; time.sleep(1); numbers =")
    alone = pair.left.run_plain([sys.executable, "-c", _PYTHON]).strip()
    ends = []
    for replicas in (2, 1):
        with far_donors(pair.right, replicas, mebibytes=128) as donors:
            job = _start_far(pair.left, donors, [sys.executable, "-c", script], "--far-replicas", str(replicas))
            job.expect("^filled", 60)
            donors[0].kill()
            status = job.wait(120)
            if replicas == 2:
                expect(status == 0 and alone in job.output, f"the program ended with {status}:\n{job.output[-2000:]}")
            else:
                expect(status == -7, f"the program ended with {status}, not by SIGBUS:\n{job.output[-2000:]}")
            ends.append(str(status))
    return "status " + ", ".join(ends)


def _gateway_restarted(pair):
    """A program goes on with its remote memory when its gateway is killed, or stopped, and started again."""
    script = _PYTHON.replace("numbers =", "print('filled', flush=True); import time; time.sleep(4); numbers =")
    alone = pair.left.run_plain([sys.executable, "-c", _PYTHON]).strip()
    for end_gateway in (kill_gateway, stop_gateway):
        with far_donors(pair.right, 1, mebibytes=128) as donors:
            job = _start_far(pair.left, donors, [sys.executable, "-c", script])
            job.expect("^filled", 60)
            end_gateway(pair.left)
            pair.left.start_gateway()
            status = job.wait(120)
            expect(status == 0 and alone in job.output, f"{end_gateway.__name__}: the program ended with {status}:\n{job.output[-2000:]}")
            continued = donors[0].metrics()["rocegw_memory_sessions_continued_total"]
            expect(continued >= 1, f"{end_gateway.__name__}: the donor has not continued the session")
    return "killed, stopped"


def _one_after_the_other(pair):
    """Programs that follow one another get remote memory at once, although the donor has room for one of them only."""
    with far_donors(pair.right, 1, mebibytes=100) as donors:
        for _ in range(3):
            output, note = _run_far(pair.left, donors, [sys.executable, "-c", _PYTHON])
            expect(int(re.search(r": (\d+) MiB", note).group(1)) > 0, f"no remote memory: {note}")
        donors[0].expect_free(30)
    return note


def _no_donor(pair):
    """Without a donor a program runs as it does without --far, and says so; wrong options are refused."""
    for words, why in ((["--far", "2", "--far-donor", "a"], "fraction"), (["--far", "0.5"], "either --far-donor"),
                       (["--far-size", "1GiB"], "go with --far"), (["--far", "1", "--far-donor", "a", "--far-size", "3X"], "is a size"),
                       (["--far", "1", "--far-donor", "a", "--far-least", "4KiB"], "at least 64KiB"),
                       (["--far", "1", "--far-donor", "a", "--in-process"], "needs the daemon")):
        job = pair.left.start_plain([pair.left.launcher[0], *words, "--", "true"])
        expect(job.wait(10) == 125 and why in job.output, f"{words}: {job.returncode}: {job.output}")
    with far_donors(pair.right, 1, mebibytes=64) as donors:
        # The donor has not as much memory as the program wants.
        job = _start_far(pair.left, donors, [pair.left.program("far_program")])
        status = job.wait(60)
        expect(status == 0 and "no remote memory, the program goes on without" in job.output, f"{status}:\n{job.output}")
        eventually("free", lambda: donors[0].metrics()["rocegw_memory_leased_bytes"] == 0 * MIB, 10)
    return "local memory"


def far_program_cases():
    return [Case("far.program.calls", 4200, _calls), Case("far.program.programs", 4200, _programs),
            Case("far.program.grows", 4200, _grows), Case("far.program.donor_killed", 4200, _donor_killed), Case("far.program.no_donor", 4200, _no_donor),
            Case("far.program.gateway_restarted", 4200, _gateway_restarted),
            Case("far.program.one_after_the_other", 4200, _one_after_the_other)]
