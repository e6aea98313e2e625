# SPDX-License-Identifier: Apache-2.0
"""What the dashboards show, in a form that is read and reviewed; dashboards/make.py turns it into Grafana's JSON."""
