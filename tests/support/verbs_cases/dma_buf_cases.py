# SPDX-License-Identifier: Apache-2.0
"""Dma-bufs of a real kernel: the guest has the virtual graphics driver vgem, which exports some."""

from .case import Case, expect


def _guest(pair):
    job = pair.right.start_plain("exec dma_buf_check")
    expect(job.wait(60) == 0 and "[  PASSED  ]" in job.output, job.output)
    return f"{job.output.count('[       OK ]')} tests"


def dma_buf_cases():
    return [Case("dma_buf.guest", 4200, _guest, "gateway")]
