# SPDX-License-Identifier: Apache-2.0
"""Do gateways find each other, and how well do their channels carry?"""

from .model import (CLUSTER_VARIABLE, GREEN, NODE, NODE_VARIABLE, RED, YELLOW, dashboard, graph, limits, number, row)

RATE = "[$__rate_interval]"


def per_node(metric):
    return f"sum by (node) (rate({metric}{{{NODE}}}{RATE}))"


_LOSS = limits(GREEN, (0.001, YELLOW), (0.01, RED))
_LOST = f"sum by (node) (rate(rocegw_channel_resent_packets_total{{{NODE}}}{RATE}))"

DASHBOARD = dashboard(
    "rocegw-channels", "rocegw / Channels and congestion control",
    "Do gateways find each other, how well do their channels carry, and what does congestion control do?",
    [CLUSTER_VARIABLE, NODE_VARIABLE],
    row("Now",
        number("Peers that are gateways", "How many peers can be reached over channels?", "short",
               f'sum(rocegw_discovery_peers{{kind="gateway",{NODE}}})'),
        number("Peers that are RDMA devices", "How many peers speak plain RoCEv2?", "short",
               f'sum(rocegw_discovery_peers{{kind="rdma_device",{NODE}}})'),
        number("Frames delivered", "How many frames do channels deliver?", "pps",
               f"sum(rate(rocegw_channel_rx_packets_total{{{NODE}}}{RATE}))"),
        number("Frames sent again", "Which part of what is sent is a frame that was lost?", "percentunit",
               f"sum(rate(rocegw_channel_resent_packets_total{{{NODE}}}{RATE})) / (sum(rate(rocegw_tx_packets_total{{{NODE}}}"
               f"{RATE})) > 0)", thresholds=_LOSS),
        number("Channels", "How many channels are there? Two gateways each count theirs.", "short",
               f"sum(rocegw_worker_channels{{{NODE}}})"),
        number("Channels begun", "How many channels began in the last five minutes?", "short",
               f"sum(increase(rocegw_channel_open_events_total{{{NODE}}}[5m]))"),
        number("Paths given up", "How often did a channel take another path in the last five minutes?", "short",
               f"sum(increase(rocegw_channel_path_change_events_total{{{NODE}}}[5m]))", thresholds=limits(GREEN, (1, YELLOW))),
        graph("Frames", "How much do channels carry?", "pps", (per_node("rocegw_channel_rx_packets_total"), "{{node}} delivered")),
        graph("Loss on channels", "Which part of what a node sends are frames that were lost? Objective: less than 0.1 %",
              "percentunit", (f"{_LOST} / ({per_node('rocegw_tx_packets_total')} > 0)", "{{node}}"), thresholds=_LOSS),
        graph("Silence", "Where does nothing come back, so that channels ask or take another path?", "cps",
              (per_node("rocegw_channel_probe_events_total"), "{{node}} asked"),
              (per_node("rocegw_channel_path_change_events_total"), "{{node}} took another path")),
        graph("Marks of switches", "Where is congestion, and is it switches that say so?", "percentunit",
              (f"{per_node('rocegw_rx_ce_marked_packets_total')} / ({per_node('rocegw_rx_packets_total')} > 0)", "{{node}}")),
        graph("Congestion control changed", "Does the policy change the algorithm of a worker's connections?", "cps",
              (per_node("rocegw_congestion_switch_events_total"), "{{node}}")),
        graph("Congestion notifications", "Do RDMA devices and gateways tell each other to slow down?", "pps",
              (per_node("rocegw_cnp_tx_packets_total"), "{{node}} sent"), (per_node("rocegw_cnp_rx_packets_total"),
                                                                           "{{node}} received")),
        shown=True),
    row("Life of channels",
        graph("Begun and ended", "Do channels come and go?", "cps",
              (per_node("rocegw_channel_open_events_total"), "{{node}} begun"),
              (per_node("rocegw_channel_close_events_total"), "{{node}} ended")),
        graph("Half-open ones ended", "Does somebody begin channels and not go on with them?", "cps",
              (per_node("rocegw_channel_half_open_close_events_total"), "{{node}}"),
              (per_node("rocegw_channel_retry_events_total"), "{{node}} to prove their address first")),
        graph("Packets that manage channels", "How much is opening, probing, closing and resetting?", "pps",
              (per_node("rocegw_channel_control_rx_packets_total"), "{{node}}")),
        graph("Acknowledgements", "How many frames does one acknowledgement cover?", "short",
              (f"{per_node('rocegw_channel_rx_packets_total')} / ({per_node('rocegw_channel_ack_tx_packets_total')} > 0)",
               "{{node}}")),
        graph("Acknowledgements received", "Do acknowledgements come back?", "pps",
              (per_node("rocegw_channel_ack_rx_packets_total"), "{{node}}")),
        graph("Channel packets not used", "Why are packets of channels dropped?", "pps",
              (f'topk(10, sum by (reason) (rate(rocegw_drops_total{{reason=~"channel_.+|unexpected",{NODE}}}'
               f'{RATE})) > 0)', "{{reason}}"))),
    row("Peers",
        graph("Arrived by peer", "To which gateways of the fleet does most go?", "Bps",
              (f"topk(10, sum by (peer) (rate(rocegw_peer_arrived_bytes_total{{{NODE}}}{RATE})))", "{{peer}}")),
        graph("Sent again by peer", "On the way to which gateways is most lost?", "pps",
              (f"topk(10, sum by (peer) (rate(rocegw_peer_resent_packets_total{{{NODE}}}{RATE})))", "{{peer}}")),
        graph("Round trips", "Which gateways are far away, or behind queues?", "s",
              (f"topk(10, max by (peer) (rocegw_peer_rtt_seconds{{{NODE}}}))", "{{peer}}")),
        graph("Under way", "To which gateways is most on its way?", "bytes",
              (f"topk(10, sum by (peer) (rocegw_peer_in_flight_bytes{{{NODE}}}))", "{{peer}}")),
        graph("Channels by peer", "To which gateways do most channels lead?", "short",
              (f"topk(10, sum by (peer) (rocegw_peer_channels{{{NODE}}}))", "{{peer}}")),
        graph("Gateways of the fleet", "Do the addresses of the fleet's gateways answer as gateways?", "short",
              (f"sum by (answers) (rocegw_fleet_peer_addresses{{{NODE}}})", "answers: {{answers}}"))),
    row("Discovery",
        graph("Questions", "What comes of asking peers whether they are gateways?", "cps",
              (f"sum by (outcome) (rate(rocegw_discovery_questions_total{{{NODE}}}{RATE}))", "{{outcome}}")),
        graph("Answers", "Are other gateways' questions answered? no: they came too fast.", "cps",
              (f"sum by (sent) (rate(rocegw_discovery_answers_total{{{NODE}}}{RATE}))", "answered: {{sent}}")),
        graph("Peers", "What are the peers of each node?", "short",
              (f"sum by (node, kind) (rocegw_discovery_peers{{{NODE}}})", "{{node}} {{kind}}"))))
