# SPDX-License-Identifier: Apache-2.0
"""Attackers on a gateway beside a program that behaves: what scripts/bench hostile runs and judges."""
