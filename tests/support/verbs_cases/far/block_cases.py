# SPDX-License-Identifier: Apache-2.0
"""Cases of the block pool of a session: examples/layer_cache on the left, donors on the right."""

from ..case import Case, expect
from .load_cases import MIB, far_donors, load_report


def _start(host, donors, *options):
    words = [host.program("example_layer_cache")]
    for donor in donors:
        words += ["--donor", f"{donor.host.address4},{donor.port}"]
    job = host.start([*words, *map(str, options)])
    job.expect("^ready", 60)
    return job


def run_layers(host, donors, *options):
    return load_report(_start(host, donors, *options))


def _layers(pair):
    """Four sequences of 8 layers of 16 blocks of 64 KiB are 32 MiB: once with room for all of them, once with half."""
    shape = ("--block", 65536, "--blocks", 16, "--layers", 8, "--sequences", 4, "--passes", 3, "--slab", MIB)
    with far_donors(pair.right, 2) as donors:
        whole = run_layers(pair.left, donors, *shape, "--size", 32 * MIB)
        expect(whole["misses"] == 512 and whole["hits"] == 3 * 512 and whole["evictions"] == 0, f"there is room for all: {whole}")
        half = run_layers(pair.left, donors, *shape, "--size", 16 * MIB)
        expect(half["evictions"] > 0 and half["misses"] > 512, f"nothing was evicted: {half}")
        donors[0].expect_free()
    return f"layer of 1 MiB: average {whole['average_us']} us, p99 {whole['p99_us']} us"


def _donor_killed(pair):
    """The values of a lost donor become misses; they are put again, and no byte is wrong."""
    with far_donors(pair.right, 2) as donors:
        job = _start(pair.left, donors, "--block", 65536, "--blocks", 16, "--layers", 8, "--sequences", 2, "--passes", 60,
                     "--slab", MIB, "--size", 24 * MIB, "--timeout", 3000)
        donors[0].kill()
        report = load_report(job)
    expect(report["lost"] > 0 and report["hits"] > report["misses"], f"no value was lost: {report}")
    return f"{report['lost']} values lost, {report['hits']} hits"


def _small_queue(pair):
    """A put of 64 KiB and a bit, when 64 KiB may be queued, ends well: the end of the value belongs to what was let in."""
    with far_donors(pair.right, 1) as donors:
        job = pair.left.start([pair.left.program("far_blocks"), donors[0].host.address4, str(donors[0].port)])
        status = job.wait(60)
        expect(status == 0, f"far_blocks ended with {status}:\n{job.output}")
    return "no put was refused"


def far_block_cases():
    return [Case("far.blocks.small_queue", 4200, _small_queue), Case("far.blocks.layers", 4200, _layers),
            Case("far.blocks.donor_killed", 4200, _donor_killed)]
