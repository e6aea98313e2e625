# SPDX-License-Identifier: Apache-2.0
"""Is the fleet well, and if not, where to look?"""

from .model import (CLUSTER_VARIABLE, FLEET, GREEN, RED, YELLOW, dashboard, graph, limits, number, row, table)

_UP = f'job="rocegw-gateway",{FLEET}'
RATE = "[$__rate_interval]"

DASHBOARD = dashboard(
    "rocegw-fleet", "rocegw / Fleet", "Is the fleet well, and if not, which node or tenant is it?", [CLUSTER_VARIABLE],
    row("Now",
        number("Gateways that answer", "Which part of the gateways can be scraped?", "percentunit",
               f"avg(up{{{_UP}}})", thresholds=limits(RED, (0.99, YELLOW), (1, GREEN))),
        number("Gateways not able", "How many gateways cannot take programs, because they are down or not ready?", "short",
               f"count(up{{{_UP}}}) - (sum(rocegw_ready{{{_UP}}}) or vector(0))", thresholds=limits(GREEN, (1, RED))),
        number("Nodes out of sync", "How many gateways do not run what the controller wants?", "short",
               f"sum(1 - rocegw_agent_in_sync{{{FLEET}}})", thresholds=limits(GREEN, (1, YELLOW))),
        number("Programs attached", "How many processes use the fleet?", "short", f"sum(rocegw_sessions{{{FLEET}}})"),
        number("Queue pairs", "How many queue pairs are there?", "short", f"sum(rocegw_queue_pairs{{{FLEET}}})"),
        number("Alerts that fire", "How many of the alerts of rocegw fire?", "short",
               f'sum(ALERTS{{alertname=~"Rocegw.+",alertstate="firing",{FLEET}}}) or vector(0)',
               thresholds=limits(GREEN, (1, RED))),
        graph("Traffic", "How much do the gateways of each cluster carry?", "Bps",
              (f"sum by (cluster) (rate(rocegw_tx_bytes_total{{{FLEET}}}{RATE}))", "{{cluster}} sent"),
              (f"sum by (cluster) (rate(rocegw_rx_bytes_total{{{FLEET}}}{RATE}))", "{{cluster}} received"), width=12),
        graph("Busiest nodes", "Which ten nodes send most?", "Bps",
              (f"topk(10, sum by (cluster, node) (rate(rocegw_tx_bytes_total{{{FLEET}}}{RATE})))", "{{cluster}} {{node}}"),
              width=12),
        graph("Loss", "On which ten nodes has most to be sent again?", "percentunit",
              (f"topk(10, sum by (cluster, node) (rate(rocegw_retransmit_packets_total{{{FLEET}}}{RATE}))"
               f" / (sum by (cluster, node) (rate(rocegw_tx_packets_total{{{FLEET}}}{RATE})) > 0))",
               "{{cluster}} {{node}}"), thresholds=limits(GREEN, (0.01, RED))),
        graph("Refused requests", "Whose programs were refused something, and which limit was it?", "reqps",
              (f"topk(10, sum by (cluster, tenant, limit) (rate(rocegw_pool_refused_total{{{FLEET}}}{RATE})) > 0)",
               "{{cluster}} {{tenant}} {{limit}}")),
        graph("Queue pairs that fail", "On which ten nodes do queue pairs go to the error state by themselves?", "cps",
              (f"topk(10, sum by (cluster, node) (rate(rocegw_qp_error_events_total{{{FLEET}}}{RATE})))",
               "{{cluster}} {{node}}")),
        shown=True),
    row("Objectives",
        graph("Attach", "Which part of the gateways could take programs, which part of the programs that may attach did? Objective: 99.9 %",
              "percentunit",
              (f"cluster:rocegw_attach_available:ratio{{{FLEET}}}", "{{cluster}}"),
              (f"cluster:rocegw_attach_succeeded:ratio_rate5m{{{FLEET}}}", "{{cluster}}, of the programs that may"),
              thresholds=limits(RED, (0.999, GREEN))),
        graph("Connection set-up", "Which part of the queue pairs was set up within 5 ms? Objective: 99 %", "percentunit",
              (f"cluster:rocegw_pool_set_up_fast:ratio_rate5m{{{FLEET}}}", "{{cluster}}"),
              thresholds=limits(RED, (0.99, GREEN))),
        graph("Delivery", "Which part of what is sent was not sent before? Objective: 99.9 %", "percentunit",
              (f"cluster:rocegw_delivered_at_once:ratio_rate5m{{{FLEET}}}", "{{cluster}}"),
              (f"cluster:rocegw_completed_well:ratio_rate5m{{{FLEET}}}", "{{cluster}}, completions that did not fail"),
              thresholds=limits(RED, (0.999, GREEN)))),
    row("What runs",
        table("Versions", "Which versions run, and how many of each?", "short",
              (f"count by (cluster, job, version) (rocegw_build_info{{job=~\"rocegw-.+\",{FLEET}}})", "daemons")),
        table("Nodes", "Which twenty nodes have most queue pairs?", "short",
              (f"topk(20, sum by (cluster, node) (rocegw_queue_pairs{{{FLEET}}}))", "queue pairs"))))
