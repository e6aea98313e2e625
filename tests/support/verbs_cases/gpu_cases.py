# SPDX-License-Identifier: Apache-2.0
"""What runs on a machine with a GPU, by scripts/check-gpu alone: NVIDIA's or AMD's driver instead of the fake ones of
memory_cases. Every program that is missing there, or was built without its maker's library, is a failure that says so."""

import json
import re
import shutil

from .case import Case, expect
from .memory_cases import kv_transfer, on_device
from .tool_cases import perftest, run_tool


def _moved(pair):
    counts = [host.counters()["rocegw_memory_device_bytes_total"] for host in (pair.left, pair.right)]
    expect(all(counts), f"bytes moved by copies of devices: {counts}")


def _check(kind):
    def run(pair):
        ran = on_device(pair, "cm", kind) + on_device(pair, "socket", kind)
        _moved(pair)
        return f"{len(ran)} rdma_check cases"
    return run


def _perftest(program):
    def run(pair):
        expect(shutil.which(program), f"{program} of perftest is not installed")
        job = pair.left.start_plain([program, "--help"])
        job.wait(20)
        expect("--use_cuda" in job.output, f"this {program} was built without CUDA (configure with CUDA_H_PATH)")
        note = perftest(pair, True, program, "socket", 4096, ["--use_cuda=0"], size=1 << 20, iterations=1000)
        _moved(pair)
        return note
    return run


def _ucx(test):
    def run(pair):
        expect(shutil.which("ucx_info"), "ucx_info of UCX is not installed")
        job = pair.left.start_plain(["ucx_info", "-d"])
        job.wait(30)
        expect("cuda_copy" in job.output, "this UCX was built without CUDA (configure --with-cuda)")
        port = pair.right.fresh_port()
        words = ["env", "UCX_TLS=rc_v,cuda_copy", f"UCX_NET_DEVICES={pair.right.device}:1", "ucx_perftest", "-p", str(port), "-t", test,
                 "-m", "cuda", "-s", str(1 << 20), "-n", "1000"]
        outputs = run_tool(pair, True, words, [*words, pair.right.address4], ready="Waiting for connection")
        _moved(pair)
        return outputs[1].splitlines()[-1]
    return run


def _nccl(pair):
    """Two ranks, each in one host's namespace with a GPU of its own, and nothing but the net plugin between them."""
    for program in ("mpirun", "all_reduce_perf"):
        expect(shutil.which(program), f"{program} is not installed (Open MPI; nccl-tests built with MPI=1)")
    job = pair.left.start_plain(["nvidia-smi", "-L"])
    job.wait(30)
    gpus = len(re.findall(r"^GPU \d+:", job.output, re.MULTILINE))
    expect(gpus >= 2, f"NCCL puts two ranks on two GPUs, and this host has {gpus}")
    ranks = []
    for rank, host in enumerate((pair.left, pair.right)):
        ranks += [":"] if ranks else []
        ranks += ["-np", "1", "ip", "netns", "exec", host.namespace, "env", f"ROCEGW_SOCKET={host.attach_socket}",
                  f"CUDA_VISIBLE_DEVICES={rank}", "NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1", "NCCL_NET=IB", "NCCL_DEBUG=INFO",
                  f"NCCL_IB_HCA={host.device}", host.program("rocegw-run"), "all_reduce_perf", "-b", "1M", "-e", "64M", "-f", "4", "-g", "1"]
    job = pair.left.start_plain(["mpirun", "--allow-run-as-root", "--oversubscribe", *ranks])
    expect(job.wait(300) == 0, job.output)
    expect("NET/IB" in job.output, f"NCCL used another network:\n{job.output}")
    expect(re.search(r"Out of bounds values : 0 OK", job.output), job.output)
    _moved(pair)
    return re.search(r"Avg bus bandwidth.*", job.output).group(0)


def _kv(left, right):
    def run(pair):
        report = json.loads(kv_transfer(pair, left, right, ["--layers", "32", "--tokens", "512"], requests=50, timeout=300))
        _moved(pair)
        return f"average {report['average_ms']} ms, p99 {report['p99_ms']} ms, {report['gbit_per_second']} Gbit/s"
    return run


def gpu_cases():
    """In the order of what is needed for them."""
    cases = [Case(f"gpu.{kind}", 4200, _check(kind), needs="gpu") for kind in ("device", "device_shared")]
    cases += [Case("gpu.kv_transfer", 4200, _kv("cuda", "cuda"), needs="gpu"),
              Case("gpu.kv_transfer.host", 4200, _kv("host", "host"), needs="gpu")]
    cases += [Case(f"gpu.{program}", 4200, _perftest(program), needs="gpu") for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw")]
    cases += [Case(f"gpu.ucx.{test}", 4200, _ucx(test), needs="gpu") for test in ("tag_bw", "ucp_put_bw")]
    return [*cases, Case("gpu.nccl", 4200, _nccl, needs="gpu")]
