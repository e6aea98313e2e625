# SPDX-License-Identifier: Apache-2.0
"""Where is a migration of a storage cluster, what does it wait for, and is the cluster as well as before?"""

from .model import CLUSTER_VARIABLE, CONTROLLER, FLEET, GREEN, NODE, NODE_VARIABLE, RED, YELLOW, dashboard, graph, limits, number, row, table, variable

RATE = "[$__rate_interval]"
MIGRATION = 'migration=~"$migration",' + CONTROLLER
MIGRATION_VARIABLE = variable("migration", "Migration", f"label_values(rocegw_migration_state{{{FLEET}}}, migration)")
_ENDED = 'state=~"FINALIZED|ROLLED_BACK|ABORTED"'
_LAST = 'state=~"DONE|OLD_REMOVED|SOAKING"'


def rate(metric):
    return f"sum by (node) (rate({metric}{{{NODE}}}{RATE}))"


DASHBOARD = dashboard(
    "rocegw-migration", "rocegw / Migration", "Where is a migration of a storage cluster, and is the cluster as well as before?",
    [CLUSTER_VARIABLE, MIGRATION_VARIABLE, NODE_VARIABLE],
    row("Now",
        number("Need a person", "How many migrations wait for somebody?", "short",
               f'sum(rocegw_migration_state{{state=~"PAUSED|AWAITING_APPROVAL|FAILED",{MIGRATION}}} '
               f'unless on (cluster, migration) rocegw_migration_paused{{reason="window-closed",{MIGRATION}}}) or vector(0)',
               thresholds=limits(GREEN, (1, YELLOW))),
        number("Migrated", "Which part of the nodes has the new transport?", "percentunit",
               f"(sum(rocegw_migration_nodes{{{_LAST},{MIGRATION}}}) or vector(0)) / sum(rocegw_migration_nodes{{{MIGRATION}}})"),
        number("Out of service", "How many nodes are out of service, or may be?", "short",
               f"sum(rocegw_migration_nodes_out_of_service{{{MIGRATION}}})", thresholds=limits(GREEN, (1, YELLOW))),
        number("Lost or not brought back", "How many nodes does the storage miss until a person decides?", "short",
               f'sum(rocegw_migration_nodes{{state=~"QUARANTINED|ROLLBACK_FAILED",{MIGRATION}}}) or vector(0)',
               thresholds=limits(GREEN, (1, RED))),
        number("In this state for", "How long has nothing moved? The longest of the selected migrations that have not ended.", "s",
               f"time() - min(rocegw_migration_state_since_timestamp_seconds{{{MIGRATION}}} "
               f'unless on (cluster, migration) rocegw_migration_state{{{_ENDED},{MIGRATION}}})'),
        number("Controllers that drive", "Does a controller drive migrations? Exactly one.", "short",
               f"sum(rocegw_migrations_leads{{{CONTROLLER}}})", thresholds=limits(RED, (1, GREEN))),
        table("States", "In which state is each migration?", "short",
              (f"sum by (migration, state) (rocegw_migration_state{{{MIGRATION}}})", "{{migration}} {{state}}"), width=8),
        table("Why", "Why are migrations paused?", "short",
              (f"sum by (migration, reason) (rocegw_migration_paused{{{MIGRATION}}})", "{{migration}} {{reason}}"), width=8),
        graph("Nodes", "How many nodes are in which state?", "short",
              (f"sum by (state) (rocegw_migration_nodes{{{MIGRATION}}})", "{{state}}"), stack=True),
        graph("Waves", "Which part of each wave's nodes has the new transport?", "percentunit",
              (f"sum by (migration, wave) (rocegw_migration_nodes{{{_LAST},{MIGRATION}}}) / "
               f"sum by (migration, wave) (rocegw_migration_nodes{{{MIGRATION}}})", "{{migration}} {{wave}}")),
        graph("Steps", "How fast do states change?", "ops",
              (f"sum by (migration) (rate(rocegw_migration_changes_total{{{MIGRATION}}}{RATE}))", "{{migration}}")),
        graph("Nodes out of service", "Does a migration stay below its limit?", "short",
              (f"sum by (migration) (rocegw_migration_nodes_out_of_service{{{MIGRATION}}})", "{{migration}}")),
        shown=True),
    # The time axis compares: before the first wave, and after each.
    row("Before and after",
        graph("Slowest hundredth of requests", "Do requests over RoCE take longer than before the last wave?", "s",
              (f"histogram_quantile(0.99, sum by (node, le) (rate(rocegw_pool_operation_seconds_bucket{{{NODE}}}{RATE})))", "{{node}}"),
              width=12),
        graph("Errors of queue pairs", "Do connections fail more often than before the last wave?", "cps",
              (rate("rocegw_qp_error_events_total"), "{{node}}"), width=12),
        graph("Bytes over RoCE", "Do the bytes of migrated nodes go over RoCE?", "Bps",
              (rate("rocegw_tx_bytes_total"), "{{node}} sent"), (rate("rocegw_rx_bytes_total"), "{{node}} received"), stack=True, width=12),
        graph("Retransmission", "Does the network deliver what the storage sends over RoCE?", "ops",
              (rate("rocegw_retransmit_packets_total"), "{{node}}"), width=12)),
)
