# SPDX-License-Identifier: Apache-2.0
"""What does a tenant get, and what is it refused?"""

from .model import (CLUSTER_VARIABLE, GREEN, NODE_VARIABLE, RED, TENANT, TENANT_VARIABLE, YELLOW, dashboard, graph, heatmap,
                    limits, number, row, table)

RATE = "[$__rate_interval]"
POOL = "{{tenant}}/{{pool}}"
_BY = "sum by (tenant, pool)"
_POLICY = 'limit=~"identity|allowed_peers"'
_RATES = 'limit=~"bytes_per_second|packets_per_second"'
_ROOM = 'limit!~"identity|allowed_peers|bytes_per_second|packets_per_second"'

DASHBOARD = dashboard(
    "rocegw-tenants", "rocegw / Tenants and pools", "What do tenants use, what is left of their limits, what were they refused?",
    [CLUSTER_VARIABLE, NODE_VARIABLE, TENANT_VARIABLE],
    row("Now",
        number("Pools", "How many pools are there?", "short",
               f'count(count by (tenant, pool) (rocegw_pool_used{{limit="qps",{TENANT}}}))'),
        number("Programs", "How many processes are attached?", "short", f'sum(rocegw_pool_used{{limit="sessions",{TENANT}}})'),
        number("Queue pairs", "How many queue pairs do they hold?", "short", f'sum(rocegw_pool_used{{limit="qps",{TENANT}}})'),
        number("Registered memory", "How much memory have they registered?", "bytes",
               f'sum(rocegw_pool_used{{limit="registered_bytes",{TENANT}}})'),
        number("Nearest to a limit", "How full is the fullest pool, of any limit of its own?", "percentunit",
               f"max(rocegw_pool_used{{{TENANT}}} / (rocegw_pool_peak{{{TENANT}}} > 0))",
               thresholds=limits(GREEN, (0.8, YELLOW), (0.95, RED))),
        number("Refused in five minutes", "How many requests were refused lately?", "short",
               f"sum(increase(rocegw_pool_refused_total{{{_ROOM},{TENANT}}}[5m]))", thresholds=limits(GREEN, (1, RED))),
        graph("Sent", "Which pools send how much?", "Bps",
              (f"topk(10, {_BY} (rate(rocegw_pool_sent_bytes_total{{{TENANT}}}{RATE})))", POOL), stack=True, width=12),
        graph("Packets sent", "Which pools send how many packets?", "pps",
              (f"topk(10, {_BY} (rate(rocegw_pool_sent_packets_total{{{TENANT}}}{RATE})))", POOL), stack=True, width=12),
        graph("Limits used", "Which pools come near a limit of their own?", "percentunit",
              (f"topk(10, max by (tenant, pool, limit) (rocegw_pool_used{{{TENANT}}} / (rocegw_pool_peak{{{TENANT}}} > 0)))",
               POOL + " {{limit}}"), thresholds=limits(GREEN, (0.8, YELLOW), (0.95, RED))),
        graph("Refused for want of room", "Which limits refuse requests?", "reqps",
              (f"topk(10, sum by (tenant, pool, limit) (rate(rocegw_pool_refused_total{{{_ROOM},{TENANT}}}{RATE})) > 0)",
               POOL + " {{limit}}")),
        graph("Held back by a rate", "Which pools send less than they would?", "cps",
              (f"topk(10, sum by (tenant, pool, limit) (rate(rocegw_pool_refused_total{{{_RATES},{TENANT}}}{RATE})) > 0)",
               POOL + " {{limit}}")),
        shown=True),
    row("Who may not",
        graph("Refused by identity or peer", "Does somebody attach who may not, or talk to somebody it may not?", "reqps",
              (f"sum by (tenant, pool, limit) (rate(rocegw_pool_refused_total{{{_POLICY},{TENANT}}}{RATE}))",
               POOL + " {{limit}}"), width=12),
        graph("Attaches", "Do programs get in? Refused: by a limit, a drain, their identity; failed: the gateway could not.", "ops",
              (f"sum by (tenant, pool, outcome) (rate(rocegw_pool_attaches_total{{{TENANT}}}{RATE}))", POOL + " {{outcome}}"),
              width=12),
        table("Limits and what is held", "What does each pool hold, what is it promised, what may it have at most?", "short",
              (f'sum by (tenant, pool, limit) (rocegw_pool_used{{{TENANT}}})', "held"),
              (f'sum by (tenant, pool, limit) (rocegw_pool_committed{{{TENANT}}})', "committed"),
              (f'sum by (tenant, pool, limit) (rocegw_pool_peak{{{TENANT}}})', "peak"))),
    row("Requests",
        heatmap("Times of requests", "How long do requests take from when a gateway takes them until they complete?", "s",
                f"sum by (le) (rate(rocegw_pool_operation_seconds_bucket{{{TENANT}}}{RATE}))"),
        graph("Requests, slowest hundredth", "How long do the slowest of a hundred requests take?", "s",
              (f"histogram_quantile(0.99, sum by (tenant, pool, le) (rate(rocegw_pool_operation_seconds_bucket{{{TENANT}}}"
               f"{RATE})))", POOL), width=12),
        graph("Requests completed", "How many requests complete?", "ops",
              (f"{_BY} (rate(rocegw_pool_operation_seconds_count{{{TENANT}}}{RATE}))", POOL))),
    row("Connection set-up",
        heatmap("Set-up times", "How long does the gateway spend on a queue pair until it can send?", "s",
                f"sum by (le) (rate(rocegw_pool_set_up_seconds_bucket{{{TENANT}}}{RATE}))"),
        graph("Set-up, slowest hundredth", "How long do the slowest of a hundred queue pairs take? Objective: 5 ms", "s",
              (f"histogram_quantile(0.99, sum by (tenant, pool, le) (rate(rocegw_pool_set_up_seconds_bucket{{{TENANT}}}"
               f"{RATE})))", POOL), thresholds=limits(GREEN, (0.005, RED)), width=12),
        graph("Set-ups", "How many queue pairs are set up?", "ops",
              (f"{_BY} (rate(rocegw_pool_set_up_seconds_count{{{TENANT}}}{RATE}))", POOL)),
        graph("Out of the reserve", "Does the reserve of ready queue pairs suffice? Misses had to be made.", "ops",
              (f"{_BY} (rate(rocegw_pool_ready_hits_total{{{TENANT}}}{RATE}))", POOL + " ready"),
              (f"{_BY} (rate(rocegw_pool_ready_misses_total{{{TENANT}}}{RATE}))", POOL + " made")),
        graph("Reserve", "How many queue pairs are ready, and what do they cost?", "short",
              (f"{_BY} (rocegw_pool_ready_qps{{{TENANT}}})", POOL)),
        graph("Memory of the reserve", "How much shared memory is kept ready?", "bytes",
              (f"{_BY} (rocegw_pool_ready_bytes{{{TENANT}}})", POOL))))
