# SPDX-License-Identifier: Apache-2.0
"""What does a node's gateway do, and where is it short of something?"""

from .model import (CLUSTER_VARIABLE, GATEWAY, GREEN, NODE, NODE_VARIABLE, RED, YELLOW, dashboard, graph, limits, number, row)

RATE = "[$__rate_interval]"
WORKER = "{{node}} worker {{worker}}"


def per_node(metric):
    return f"sum by (node) (rate({metric}{{{NODE}}}{RATE}))"


def per_worker(metric):
    return f"sum by (node, worker) (rate({metric}{{{NODE}}}{RATE}))"


DASHBOARD = dashboard(
    "rocegw-gateway", "rocegw / Gateway", "What do the chosen gateways do, and where are they short of something?",
    [CLUSTER_VARIABLE, NODE_VARIABLE],
    row("Now",
        number("Ready", "Do all of them run with a configuration?", "percentunit", f"avg(rocegw_ready{{{GATEWAY}}})",
               thresholds=limits(RED, (1, GREEN))),
        number("Ports up", "Can all ports send and receive?", "percentunit", f"avg(rocegw_port_up{{{NODE}}})",
               thresholds=limits(RED, (1, GREEN))),
        number("Youngest gateway", "How long ago did one of them start? A start has cut its queue pairs.", "s",
               f"time() - max(process_start_time_seconds{{{GATEWAY}}})", thresholds=limits(YELLOW, (900, GREEN))),
        number("Programs", "How many processes are attached?", "short", f"sum(rocegw_sessions{{{NODE}}})"),
        number("Queue pairs", "How many queue pairs are there?", "short", f"sum(rocegw_queue_pairs{{{NODE}}})"),
        number("Registered memory", "How much memory have programs registered?", "bytes",
               f"sum(rocegw_registered_bytes{{{NODE}}})"),
        graph("Bytes", "How much goes out and comes in?", "Bps",
              (per_node("rocegw_tx_bytes_total"), "{{node}} sent"), (per_node("rocegw_rx_bytes_total"), "{{node}} received")),
        graph("Packets", "How many packets go out and come in?", "pps",
              (per_node("rocegw_tx_packets_total"), "{{node}} sent"),
              (per_node("rocegw_rx_packets_total"), "{{node}} received")),
        graph("Busy turns of the run loop", "Is a worker near its end? 1: no turn without work.", "percentunit",
              (f"{per_worker('rocegw_loop_busy_iterations_total')} / ({per_worker('rocegw_loop_busy_iterations_total')}"
               f" + {per_worker('rocegw_loop_idle_iterations_total')})", WORKER)),
        graph("Processor", "How many cores does the gateway use?", "short",
              (f"sum by (node) (rate(process_cpu_seconds_total{{{GATEWAY}}}{RATE}))", "{{node}}")),
        graph("Dropped packets", "Are received packets not used, and whose fault is it? peer: what was sent; local: this host.",
              "pps", (f"sum by (node, side) (rate(rocegw_drops_total{{{NODE}}}{RATE}))", "{{node}} {{side}}")),
        graph("Queue pairs by worker", "Is the load spread over the workers?", "short",
              (f"sum by (node, worker) (rocegw_worker_queue_pairs{{{NODE}}})", WORKER)),
        shown=True),
    row("Programs and their objects",
        graph("Objects", "What do programs hold?", "short",
              (f"sum(rocegw_memory_regions{{{NODE}}})", "memory regions"),
              (f"sum(rocegw_completion_queues{{{NODE}}})", "completion queues"),
              (f"sum(rocegw_protection_domains{{{NODE}}})", "protection domains"),
              (f"sum(rocegw_cm_ids{{{NODE}}})", "rdma_cm identifiers")),
        graph("Work requests and completions", "How much do programs ask for, and how much is answered?", "ops",
              (per_node("rocegw_wqe_send_requests_total"), "{{node}} send requests"),
              (per_node("rocegw_cqe_entries_total"), "{{node}} completions")),
        graph("Programs' faults", "Do programs use the gateway wrongly?", "cps",
              (per_node("rocegw_wqe_bad_requests_total"), "{{node}} refused work requests"),
              (per_node("rocegw_cq_overflow_events_total"), "{{node}} overrun completion queues"),
              (per_node("rocegw_client_fault_events_total"), "{{node}} broken shared memory rules"),
              (per_node("rocegw_memory_fault_operations_total"), "{{node}} memory that is not there")),
        graph("Doorbells and events", "How do programs and the gateway wake each other?", "ops",
              (per_node("rocegw_doorbells_events_total"), "{{node}} doorbells"),
              (per_node("rocegw_cq_events_total"), "{{node}} completion events"),
              (per_node("rocegw_sleeps_events_total"), "{{node}} sleeps of workers"))),
    row("Memory of programs",
        graph("Bytes by way", "How are payloads reached? Shared mappings cost least.", "Bps",
              (per_node("rocegw_memory_cross_bytes_total"), "{{node}} cross-process copy"),
              (per_node("rocegw_memory_direct_bytes_total"), "{{node}} shared mapping")),
        graph("Operations by way", "How many pieces of memory are touched, and how?", "ops",
              (per_node("rocegw_memory_cross_operations_total"), "{{node}} cross-process copy"),
              (per_node("rocegw_memory_direct_operations_total"), "{{node}} shared mapping"),
              (per_node("rocegw_memory_ring_operations_total"), "{{node}} in the rings")),
        graph("Pieces per flush", "Are copies gathered? One per flush means a system call each.", "short",
              (f"{per_node('rocegw_memory_cross_operations_total')} / ({per_node('rocegw_memory_batch_events_total')} > 0)",
               "{{node}}")),
        graph("Shared memory", "How much is given to programs?", "bytes",
              (f"sum by (node) (rocegw_segment_bytes{{{NODE}}})", "{{node}}"))),
    row("Ports and workers",
        graph("Packets per system call", "Are packets sent and received in batches?", "short",
              (f"{per_node('rocegw_tx_packets_total')} / ({per_node('rocegw_port_tx_calls_total')} > 0)", "{{node}} sent"),
              (f"{per_node('rocegw_rx_packets_total')} / ({per_node('rocegw_port_rx_calls_total')} > 0)", "{{node}} received")),
        graph("Offloads", "Do segmentation offload and merged receive work?", "pps",
              (per_node("rocegw_port_tx_segmented_total"), "{{node}} behind a shared header"),
              (per_node("rocegw_port_rx_merged_total"), "{{node}} came merged")),
        graph("Packets that a port loses", "Does the host lose packets?", "pps",
              (per_node("rocegw_port_rx_overflow_total"), "{{node}} receive buffer full"),
              (per_node("rocegw_port_tx_lost_total"), "{{node}} given up when sending"),
              thresholds=limits(GREEN, (10, RED))),
        graph("The network takes nothing", "How often has sending to wait?", "cps",
              (per_node("rocegw_tx_pushback_events_total"), "{{node}}")),
        graph("Handed to another worker", "Do packets arrive where their queue pair is?", "pps",
              (per_node("rocegw_handoff_tx_packets_total"), "{{node}}")),
        graph("Control messages", "How often is something set up or taken down?", "ops",
              (per_node("rocegw_control_messages_total"), "{{node}} of the control thread"),
              (per_node("rocegw_mad_rx_packets_total"), "{{node}} management datagrams received"),
              (per_node("rocegw_mad_tx_packets_total"), "{{node}} management datagrams sent"))),
    row("Process",
        graph("Memory", "How much memory does the gateway itself take?", "bytes",
              (f"sum by (node) (process_resident_memory_bytes{{{GATEWAY}}})", "{{node}} resident")),
        graph("File descriptors", "How near is the limit of open files?", "percentunit",
              (f"max by (node) (process_open_fds{{{GATEWAY}}} / process_max_fds{{{GATEWAY}}})", "{{node}}"),
              thresholds=limits(GREEN, (0.8, RED))),
        graph("Silence of workers", "Does a worker stand still? How long it has not answered the gateway's own questions.", "s",
              (f"max by (node, worker) (rocegw_worker_silent_seconds{{{NODE}}})", WORKER))))
