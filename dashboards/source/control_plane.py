# SPDX-License-Identifier: Apache-2.0
"""Does what people want reach the gateways, and does the store keep up?"""

from .model import (AGENT, CLUSTER_VARIABLE, CONTROLLER, FLEET, GREEN, NODE, NODE_VARIABLE, RED, YELLOW, dashboard, graph,
                    heatmap, limits, number, row)

RATE = "[$__rate_interval]"
_EXPIRY = "rocegw_certificate_expiry_timestamp_seconds"


def per_node(metric):
    return f"sum by (node) (rate({metric}{{{NODE}}}{RATE}))"


DASHBOARD = dashboard(
    "rocegw-control-plane", "rocegw / Control plane and store", "Does what is wanted reach the gateways, and does the store keep up?",
    [CLUSTER_VARIABLE, NODE_VARIABLE],
    row("Now",
        number("Controllers that answer", "How many controllers can be scraped?", "short", f"sum(up{{{CONTROLLER}}})",
               thresholds=limits(RED, (1, GREEN))),
        number("Controllers not ready", "How many cannot follow their store?", "short",
               f"sum(1 - rocegw_ready{{{CONTROLLER}}})", thresholds=limits(GREEN, (1, RED))),
        number("Agents connected", "Which part of the agents has its controller?", "percentunit",
               f"avg(rocegw_agent_controller_connected{{{NODE}}})", thresholds=limits(RED, (0.99, YELLOW), (1, GREEN))),
        number("Nodes in sync", "Which part of the gateways runs what is wanted?", "percentunit",
               f"avg(rocegw_agent_in_sync{{{NODE}}})", thresholds=limits(RED, (0.99, YELLOW), (1, GREEN))),
        number("Objects not applied", "How many objects have gateways rejected?", "short",
               f"sum(rocegw_agent_rejected_objects{{{NODE}}})", thresholds=limits(GREEN, (1, RED))),
        number("First node certificate to end", "How long is the shortest certificate of a node good? Renewed at half a day.", "s",
               f"min({_EXPIRY}{{{AGENT}}}) - time()", thresholds=limits(RED, (21600, YELLOW), (39600, GREEN))),
        graph("Connection of agents", "Do agents lose their controller or their gateway?", "short",
              (f"sum(1 - rocegw_agent_controller_connected{{{NODE}}})", "without controller"),
              (f"sum(1 - rocegw_agent_gateway_connected{{{NODE}}})", "without gateway"),
              (f"sum(rocegw_agent_unadopted{{{NODE}}})", "follow another store")),
        graph("Behind", "Which ten nodes run an older revision than they have received?", "short",
              (f"topk(10, sum by (node) (rocegw_agent_desired_revision{{{NODE}}} - rocegw_agent_applied_revision{{{NODE}}}))",
               "{{node}}")),
        graph("Followed revision", "Do all controllers follow the store at the same pace?", "short",
              (f"rocegw_followed_revision{{{CONTROLLER}}}", "{{instance}}")),
        graph("Store, slowest hundredth", "How long do the store's slowest operations take? Objective: 50 ms", "s",
              (f"histogram_quantile(0.99, sum by (operation, le) (rate(rocegw_store_operation_seconds_bucket{{{FLEET}}}{RATE})))",
               "{{operation}}"), thresholds=limits(GREEN, (0.05, RED))),
        graph("Store operations", "How much is asked of the store?", "ops",
              (f"sum by (operation) (rate(rocegw_store_operation_seconds_count{{{FLEET}}}{RATE}))", "{{operation}}")),
        graph("Store failures", "Which operations of the store fail?", "ops",
              (f"sum by (operation) (rate(rocegw_store_failures_total{{{FLEET}}}{RATE}))", "{{operation}}"),
              thresholds=limits(GREEN, (0.01, RED))),
        shown=True),
    row("Controllers",
        graph("Objects", "What is the fleet made of?", "short",
              (f"max by (kind) (rocegw_objects{{{CONTROLLER}}})", "{{kind}}")),
        graph("Who leads", "Which controller keeps the store from growing? Exactly one.", "short",
              (f"rocegw_housekeeper_leads{{{CONTROLLER}}}", "{{instance}}")),
        graph("Certificates", "How long are the authority's and the controllers' certificates good?", "s",
              (f"min by (certificate) ({_EXPIRY}{{{CONTROLLER}}}) - time()", "{{certificate}}")),
        heatmap("Transactions", "How long do writes of the store take?", "s",
                f'sum by (le) (rate(rocegw_store_operation_seconds_bucket{{operation="transaction",{FLEET}}}{RATE}))'),
        graph("Processor", "How many cores do controllers use?", "short",
              (f"sum by (instance) (rate(process_cpu_seconds_total{{{CONTROLLER}}}{RATE}))", "{{instance}}"), width=6),
        graph("Memory", "How much memory do controllers take?", "bytes",
              (f"sum by (instance) (process_resident_memory_bytes{{{CONTROLLER}}})", "{{instance}}"), width=6)),
    row("Agents",
        graph("Pushes", "How much comes down from the controllers, and is it applied?", "ops",
              (per_node("rocegw_agent_pushes_total"), "{{node}} received"),
              (per_node("rocegw_agent_applies_total"), "{{node}} handed to the gateway"),
              (per_node("rocegw_agent_failed_applies_total"), "{{node}} not answered")),
        graph("Streams that ended", "Do agents lose their streams to controllers?", "cps",
              (per_node("rocegw_agent_stream_ends_total"), "{{node}}")),
        graph("Questions", "How much is asked of the gateways through their agents?", "ops",
              (per_node("rocegw_agent_questions_total"), "{{node}}")),
        graph("Who may attach", "What do agents say about processes that want to attach?", "cps",
              (f"sum by (verdict) (rate(rocegw_agent_attach_verdicts_total{{{NODE}}}{RATE}))", "{{verdict}}")),
        graph("Certificates of nodes", "Which ten nodes' certificates end first?", "s",
              (f"bottomk(10, min by (node) ({_EXPIRY}{{{AGENT}}}) - time())", "{{node}}"), thresholds=limits(RED, (21600, GREEN))),
        graph("Renewals", "Are certificates of nodes renewed?", "cps", (per_node("rocegw_agent_renewals_total"), "{{node}}")),
        graph("Processor", "How many cores do agents use?", "short",
              (f"sum by (node) (rate(process_cpu_seconds_total{{{AGENT}}}{RATE}))", "{{node}}"), width=12),
        graph("Memory", "How much memory do agents take?", "bytes",
              (f"sum by (node) (process_resident_memory_bytes{{{AGENT}}})", "{{node}}"), width=12)))
