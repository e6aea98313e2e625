# SPDX-License-Identifier: Apache-2.0
"""Looks for a GPU, measures its plain copies, and runs the e2e cases `gpu.*`: see scripts/check-gpu."""

import argparse
import ctypes
import os
import subprocess
import sys
import time

_MIB = 1 << 20


class NoGpu(Exception):
    """There is no GPU that can be used; the text says why."""


class Cuda:
    """CUDA's driver library with a context on the first GPU."""

    def __init__(self):
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoGpu(f"the driver's library is not there ({error})") from error
        self._do("cuInit", 0)
        count = ctypes.c_int()
        self._do("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise NoGpu("the driver sees no device")
        self.count = count.value
        self._do("cuCtxCreate_v2", ctypes.byref(ctypes.c_void_p()), 0, 0)
        name = ctypes.create_string_buffer(100)
        self._do("cuDeviceGetName", name, len(name), 0)
        self.name = name.value.decode()

    def _do(self, function, *arguments):
        if not hasattr(self._library, function):
            raise NoGpu(f"the driver's library lacks {function}")
        result = getattr(self._library, function)(*arguments)
        if result != 0:
            raise NoGpu(f"{function} gives {result}")

    def copies(self, length, rounds=50):
        """Bytes per second of copies to the GPU and back, between it and pinned memory."""
        device, host = ctypes.c_uint64(), ctypes.c_void_p()
        self._do("cuMemAlloc_v2", ctypes.byref(device), ctypes.c_size_t(length))
        self._do("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(length), 0)
        rates = []
        for function, arguments in (("cuMemcpyHtoD_v2", (device, host)), ("cuMemcpyDtoH_v2", (host, device))):
            begun = time.monotonic()
            for _ in range(rounds):
                self._do(function, *arguments, ctypes.c_size_t(length))
            self._do("cuCtxSynchronize")
            rates.append(length * rounds / (time.monotonic() - begun))
        self._do("cuMemFreeHost", host)
        self._do("cuMemFree_v2", device)
        return rates


def _tell_copies(cuda):
    print(f"check-gpu: {cuda.count} device(s), the first is {cuda.name}")
    for length in (4096, _MIB, 64 * _MIB):
        to_device, to_host = cuda.copies(length)
        print(f"check-gpu: plain copies of {length} bytes: {to_device / 1e9:.2f} GB/s to the GPU, {to_host / 1e9:.2f} GB/s back")


def main():
    parser = argparse.ArgumentParser(prog="check-gpu", description=__doc__)
    parser.add_argument("--binaries", default="build/ci/bin")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    try:
        _tell_copies(Cuda())
    except NoGpu as error:
        print(f"check-gpu: no GPU: {error}", file=sys.stderr)
        return 2
    if os.geteuid() != 0:
        print("check-gpu: network namespaces need root", file=sys.stderr)
        return 2
    words = ["tests/e2e/run.py", "--port", "udp", "--workers", "1", "--binaries", arguments.binaries]
    for case in arguments.cases or ["gpu.*"]:
        words += ["--case", case]
    return subprocess.run(words, check=False, env={**os.environ, "ROCEGW_GPU": "1"}).returncode


if __name__ == "__main__":
    sys.exit(main())
