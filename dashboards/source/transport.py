# SPDX-License-Identifier: Apache-2.0
"""Does the network deliver, and do receivers keep up?"""

from .model import (CLUSTER_VARIABLE, GREEN, NODE, NODE_VARIABLE, RED, YELLOW, dashboard, graph, limits, number, row)

RATE = "[$__rate_interval]"


def per_node(metric):
    return f"sum by (node) (rate({metric}{{{NODE}}}{RATE}))"


def share(part, whole):
    """Of each node; nothing where there is no traffic."""
    return f"{per_node(part)} / ({per_node(whole)} > 0)"


def share_now(part, whole):
    return (f"sum(rate({part}{{{NODE}}}{RATE})) / (sum(rate({whole}{{{NODE}}}{RATE})) > 0)")


def _operation_quantile(part):
    return f"histogram_quantile({part}, sum by (le) (rate(rocegw_pool_operation_seconds_bucket{{{NODE}}}{RATE})))"


_LOSS = limits(GREEN, (0.001, YELLOW), (0.01, RED))

DASHBOARD = dashboard(
    "rocegw-transport", "rocegw / Transport health", "Does the network deliver what is sent, and do receivers keep up?",
    [CLUSTER_VARIABLE, NODE_VARIABLE],
    row("Now",
        number("Sent again", "Which part of what is sent was sent before?", "percentunit",
               share_now("rocegw_retransmit_packets_total", "rocegw_tx_packets_total"), thresholds=_LOSS),
        number("Receiver not ready", "Which part of the requests finds no receive posted?", "percentunit",
               share_now("rocegw_rnr_rx_packets_total", "rocegw_request_tx_packets_total"),
               thresholds=limits(GREEN, (0.01, YELLOW), (0.05, RED))),
        number("Marked by switches", "Which part of what arrives has met congestion (CE)?", "percentunit",
               share_now("rocegw_rx_ce_marked_packets_total", "rocegw_rx_packets_total"),
               thresholds=limits(GREEN, (0.05, YELLOW), (0.5, RED))),
        number("Damaged packets", "How many packets a second have a wrong invariant CRC?", "pps",
               f'sum(rate(rocegw_drops_total{{reason="bad_icrc",{NODE}}}{RATE}))', thresholds=limits(GREEN, (0.1, RED))),
        number("Queue pairs that failed", "How many went to the error state in the last five minutes?", "short",
               f"sum(increase(rocegw_qp_error_events_total{{{NODE}}}[5m]))", thresholds=limits(GREEN, (1, RED))),
        number("Failed completions", "Which part of the completions tells of an error, flushes left out?",
               "percentunit",
               f"(sum(rate(rocegw_cqe_error_entries_total{{{NODE}}}{RATE}))"
               f" - sum(rate(rocegw_cqe_flushed_entries_total{{{NODE}}}{RATE})))"
               f" / (sum(rate(rocegw_cqe_entries_total{{{NODE}}}{RATE})) > 0)"),
        graph("Retransmission", "On which nodes is how much sent again? Objective: less than 0.1 %", "percentunit",
              (share("rocegw_retransmit_packets_total", "rocegw_tx_packets_total"), "{{node}}"), thresholds=_LOSS),
        graph("How losses are found", "By what is a loss noticed? Timeouts cost milliseconds, the others a round trip.", "cps",
              (per_node("rocegw_timeout_events_total"), "{{node}} timeout"),
              (per_node("rocegw_nak_sequence_rx_packets_total"), "{{node}} PSN sequence NAK"),
              (per_node("rocegw_tail_probe_events_total"), "{{node}} tail probe"),
              (per_node("rocegw_implied_nak_events_total"), "{{node}} later response")),
        graph("Receivers not ready", "Which nodes' programs post receives too late (sent), and who waits for them (received)?",
              "pps", (per_node("rocegw_rnr_tx_packets_total"), "{{node}} sent"),
              (per_node("rocegw_rnr_rx_packets_total"), "{{node}} received")),
        graph("Congestion", "Where do switches mark, and do senders hear of it?", "pps",
              (per_node("rocegw_rx_ce_marked_packets_total"), "{{node}} marked packets received"),
              (per_node("rocegw_cnp_tx_packets_total"), "{{node}} CNPs sent"),
              (per_node("rocegw_cnp_rx_packets_total"), "{{node}} CNPs received")),
        graph("Packets not used", "Why are received packets dropped?", "pps",
              (f'topk(10, sum by (reason) (rate(rocegw_drops_total{{{NODE}}}{RATE})) > 0)', "{{reason}}")),
        graph("Errors", "Do queue pairs fail, and do peers refuse requests?", "cps",
              (per_node("rocegw_qp_error_events_total"), "{{node}} queue pairs failed"),
              (per_node("rocegw_nak_error_rx_packets_total"), "{{node}} NAKs received"),
              (per_node("rocegw_nak_error_tx_packets_total"), "{{node}} NAKs sent")),
        shown=True),
    row("Requests and answers",
        graph("Request packets", "How much is sent for the first time, and how much again?", "pps",
              (per_node("rocegw_request_tx_packets_total"), "{{node}} first time"),
              (per_node("rocegw_retransmit_packets_total"), "{{node}} again")),
        graph("Acknowledgements", "How many packets does one acknowledgement cover?", "short",
              (share("rocegw_request_tx_packets_total", "rocegw_ack_rx_packets_total"), "{{node}}")),
        graph("READ responses", "How much is answered to READs?", "pps",
              (per_node("rocegw_read_response_tx_packets_total"), "{{node}}")),
        graph("Gaps at the receiver", "Where do requests arrive out of sequence?", "pps",
              (per_node("rocegw_nak_sequence_tx_packets_total"), "{{node}} NAKs sent")),
        graph("Done again for a duplicate", "How often is work repeated because its answer was lost?", "cps",
              (per_node("rocegw_read_replay_events_total"), "{{node}} READs"),
              (per_node("rocegw_atomic_replay_events_total"), "{{node}} atomics")),
        graph("Suspicious packets", "Do damaged packets pass the invariant CRC?", "pps",
              (per_node("rocegw_icrc_id_jump_packets_total"), "{{node}} IP ID far from others"))),
    row("Latency",
        graph("Requests", "How long do requests take from when a gateway takes them until they complete, at the median and in the slowest hundredth?",
              "s", (_operation_quantile(0.5), "median"), (_operation_quantile(0.99), "slowest hundredth"), width=12),
        graph("Mean time of requests", "On which nodes are requests slow?", "s",
              (f"{per_node('rocegw_pool_operation_seconds_sum')} / ({per_node('rocegw_pool_operation_seconds_count')} > 0)",
               "{{node}}"), width=12),
        graph("Set-up time", "How long does the gateway spend on a queue pair, at the median and in the slowest hundredth?", "s",
              (f"histogram_quantile(0.5, sum by (le) (rate(rocegw_pool_set_up_seconds_bucket{{{NODE}}}{RATE})))", "median"),
              (f"histogram_quantile(0.99, sum by (le) (rate(rocegw_pool_set_up_seconds_bucket{{{NODE}}}{RATE})))",
               "slowest hundredth"), thresholds=limits(GREEN, (0.005, RED)), width=12),
        graph("Mean set-up time", "Which nodes are slow in setting up queue pairs?", "s",
              (f"{per_node('rocegw_pool_set_up_seconds_sum')} / ({per_node('rocegw_pool_set_up_seconds_count')} > 0)", "{{node}}"),
              width=12)))
