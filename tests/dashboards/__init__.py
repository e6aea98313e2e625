# SPDX-License-Identifier: Apache-2.0
"""Judges of dashboards/: what expressions name, what panels and alerts must have, what a real Prometheus makes of them."""
