# SPDX-License-Identifier: Apache-2.0
"""Single threads of a process that get no processor, while the others run: as on a machine that is short of them, by ptrace."""

import ctypes
import os

from .job import LabError

_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
_WALL = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long


def _ptrace(request, thread):
    if _LIBC.ptrace(request, thread, None, None) != 0:
        raise LabError(f"ptrace of thread {thread}: {os.strerror(ctypes.get_errno())}")


def threads_of(pid):
    """(name, number) of each thread, the oldest first."""
    found = []
    for number in sorted(map(int, os.listdir(f"/proc/{pid}/task"))):
        with open(f"/proc/{pid}/task/{number}/comm", encoding="utf-8") as file:
            found.append((file.read().strip(), number))
    return found


class HeldThreads:
    """Stand still within the block. Enter and leave it in the same thread: the kernel takes it for the debugger."""

    def __init__(self, numbers):
        self._numbers = list(numbers)

    def __enter__(self):
        for number in self._numbers:
            _ptrace(_SEIZE, number)
            _ptrace(_INTERRUPT, number)
            os.waitpid(number, _WALL)
        return self

    def __exit__(self, *_):
        for number in self._numbers:
            _ptrace(_DETACH, number)
