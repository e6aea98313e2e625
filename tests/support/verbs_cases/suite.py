# SPDX-License-Identifier: Apache-2.0
"""Command line of a suite: chooses cases, brings up the pair of hosts, runs, reports. Exit status 0: all passed;
1: some did not; 2: the suite could not run."""

import argparse
import os
import sys

from netlab.job import LabError
from netlab.lab import Lab

from . import case_turns, failed_cases, runner


def parser_for(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", default=[], metavar="GLOB", help="only cases whose id matches")
    parser.add_argument("--without", action="append", default=[], metavar="GLOB", help="no cases whose id matches")
    parser.add_argument("--port", choices=("udp", "af_packet", "af_xdp"), default="udp", help="port mode of the gateways")
    parser.add_argument("--workers", type=int, default=1, help="workers of each gateway")
    parser.add_argument("--channels", choices=("enabled", "disabled"), default="enabled",
                        help="channels between gateways")
    parser.add_argument("--binaries", type=os.path.abspath, default=default_binaries(), help="bin folder of the build to test")
    parser.add_argument("--share", type=int, choices=(0, 1), help="of two command lines that take turns with cases ($ROCEGW_TURN)")
    parser.add_argument("--list", action="store_true", help="print the ids and exit")
    parser.add_argument("--keep", action="store_true", help="keep the run's files")
    parser.add_argument("--verbose", action="store_true", help="print the gateways' logs after a failure")
    return parser


def default_binaries():
    """$ROCEGW_BIN, else the dev preset's."""
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.abspath(os.environ.get("ROCEGW_BIN", os.path.join(here, "..", "..", "..", "build", "dev", "bin")))


def main(arguments, cases, document, make_pair, left_is_gateway=True):
    """make_pair(lab, arguments) returns the Pair. document describes every case."""
    missing, unknown = runner.undocumented(cases, document)
    if missing or unknown:
        print(f"{document} lacks {missing} and describes {unknown}, which do not exist", file=sys.stderr)
        return 2
    offered = {None} | ({"gateway"} if left_is_gateway else set())
    if left_is_gateway and arguments.workers > 1:
        offered.add("workers")
    if left_is_gateway:
        offered.add({"udp": "kernel_sockets", "af_packet": "dpdk", "af_xdp": "xdp"}[arguments.port])
    if arguments.channels == "enabled":
        offered.add("channels")
    # What a gateway inside of a program is made from depends on neither the daemons' port mode nor their workers.
    if left_is_gateway and arguments.port == "udp" and arguments.workers == 1:
        offered.add("in_process")
    # Said by scripts/check-gpu, which has looked for one.
    if left_is_gateway and os.environ.get("ROCEGW_GPU") == "1":
        offered.add("gpu")
    cases = runner.select([case for case in cases if case.needs in offered], arguments.case, arguments.without)
    cases = case_turns.of_share(cases, arguments.share)
    if arguments.list:
        print("\n".join(case.id for case in cases))
        return 0
    if not cases:
        print("no case matches", file=sys.stderr)
        return 2
    cases = failed_cases.remaining(cases)
    try:
        with Lab(arguments.keep) as lab:
            pair = make_pair(lab, arguments)
            gateways = [host for host in (pair.left, pair.right) if hasattr(host, "log")]

            def after_failure(_):
                for host in gateways if arguments.verbose else ():
                    print(f"log of {host.name}:\n{host.log()[-8000:]}", flush=True)
            failed, alone = runner.run_cases(cases, pair, after_failure)
            if alone:
                failed_cases.remember(failed)
            for host in gateways if failed and not arguments.verbose else ():
                print(f"last lines of the log of {host.name}:\n{host.log()[-2000:]}", flush=True)
            return 1 if failed else 0
    except (LabError, KeyboardInterrupt) as error:
        print(f"{os.path.basename(sys.argv[0])}: {error or 'interrupted'}", file=sys.stderr)
        return 2
