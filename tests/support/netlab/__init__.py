# SPDX-License-Identifier: Apache-2.0
"""netlab: hosts for the interop and end-to-end tests, the demo and the benchmarks.

A host is a place where verbs programs run: a network namespace with a gateway (gateway_host) or a QEMU guest with Linux's
soft-RoCE driver (rxe_guest). Both offer the same calls, so that a case is written once and run against either.
Needs only python3's own library and root."""
