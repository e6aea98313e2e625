# SPDX-License-Identifier: Apache-2.0
"""Is the data that lies in the memory of other hosts safe, and how fast are donors and disk copies?"""

from .model import CLUSTER_VARIABLE, CONTROLLER, FLEET, GREEN, NODE, RED, YELLOW, dashboard, graph, limits, number, row, variable

RATE = "[$__rate_interval]"
MEMORY = 'job="rocegw-memory",' + NODE
_NODE_VARIABLE = variable("node", "Node", f'label_values(process_resident_memory_bytes{{job="rocegw-memory",{FLEET}}}, node)')


def rate(metric):
    return f"sum by (instance) (rate({metric}{{{MEMORY}}}{RATE}))"


def each(metric):
    return f"sum by (instance) ({metric}{{{MEMORY}}})"


DASHBOARD = dashboard(
    "rocegw-remote-memory", "rocegw / Remote memory", "Is the data that lies in the memory of other hosts safe, and how fast is it?",
    [CLUSTER_VARIABLE, _NODE_VARIABLE],
    row("Now",
        number("Lost pages", "How many pages of files and swap can nobody read any more?", "short",
               f"sum(rocegw_memory_session_lost_pages{{{MEMORY}}})", thresholds=limits(GREEN, (1, RED))),
        number("Slabs without a replica", "How many stretches does no donor have at the moment?", "short",
               f"sum(rocegw_memory_session_unserved_slabs{{{MEMORY}}})", thresholds=limits(GREEN, (1, RED))),
        number("Slabs that lack a replica", "How many stretches have fewer replicas than they should?", "short",
               f"sum(rocegw_memory_session_degraded_slabs{{{MEMORY}}})", thresholds=limits(GREEN, (1, YELLOW))),
        number("Pages that disk copies lack", "How many pages would be lost with the donors although there is a disk copy?", "short",
               f"sum(rocegw_memory_session_disk_missing_pages{{{MEMORY}}})", thresholds=limits(GREEN, (1, YELLOW))),
        number("Donated", "How much memory do donors offer?", "bytes", f"sum(rocegw_memory_donated_bytes{{{MEMORY}}})"),
        number("Leased", "How much of it is in use?", "bytes", f"sum(rocegw_memory_leased_bytes{{{MEMORY}}})"),
        graph("Read", "How much do files and swap read?", "Bps", (rate("rocegw_memory_files_read_bytes_total"), "{{instance}}")),
        graph("Written", "How much do files and swap write?", "Bps", (rate("rocegw_memory_files_written_bytes_total"), "{{instance}}")),
        graph("Failed requests", "Do reads and writes fail?", "ops",
              (rate("rocegw_memory_files_failed_total"), "{{instance}} EIO"),
              (rate("rocegw_memory_files_no_room_total"), "{{instance}} no room")),
        shown=True),
    row("Donors of files and swap",
        graph("Connected donors", "How many donors has each mount?", "short",
              (each("rocegw_memory_session_donors"), "{{instance}}")),
        graph("Donors lost", "Do donors die or hang?", "ops",
              (rate("rocegw_memory_session_donors_lost_total"), "{{instance}} lost")),
        graph("Restored", "How fast are replicas restored?", "Bps",
              (rate("rocegw_memory_session_restored_bytes_total"), "{{instance}}")),
        graph("Operations", "How many RDMA operations?", "ops",
              (rate("rocegw_memory_session_operations_total"), "{{instance}}")),
        graph("Room", "How much room have the file systems?", "bytes",
              (each("rocegw_memory_files_size_bytes"), "{{instance}} size"),
              (each("rocegw_memory_files_free_bytes"), "{{instance}} free"))),
    row("Disk copies",
        graph("Disk copy writes", "How much do disk copies write and read?", "Bps",
              (rate("rocegw_memory_session_disk_written_bytes_total"), "{{instance}} written"),
              (rate("rocegw_memory_session_disk_read_bytes_total"), "{{instance}} read")),
        graph("Disk copy errors", "Do disks fail?", "ops",
              (rate("rocegw_memory_session_disk_errors_total"), "{{instance}} errors"))),
    row("Donors of the fleet",
        graph("Donors by state", "Do all donors serve, and does any controller know?", "short",
              (f"max by (state) (rocegw_donors{{{CONTROLLER}}})", "{{state}}")),
        graph("Memory of the fleet", "How much memory do donors of the fleet offer, and how much is in use?", "bytes",
              (f"max(rocegw_donors_donated_bytes{{{CONTROLLER}}})", "donated"),
              (f"max(rocegw_donors_leased_bytes{{{CONTROLLER}}})", "leased")),
        graph("Searches", "Do programs find donors with room?", "ops",
              (f"sum by (end) (rate(rocegw_donor_searches_total{{{CONTROLLER}}}{RATE}))", "{{end}}")),
        graph("Reports", "Do agents report their donors, and does the controller take them?", "ops",
              (f"sum(rate(rocegw_donor_reports_total{{{CONTROLLER}}}{RATE}))", "reports"),
              (f"sum by (reason) (rate(rocegw_refused_donors_total{{{CONTROLLER}}}{RATE}))", "{{reason}}")),
        graph("Drains", "Which donors drain, and do sessions move their data away?", "short",
              (each("rocegw_memory_draining"), "{{instance}} drains"),
              (rate("rocegw_memory_session_returned_leases_total"), "{{instance}} leases/s"))),
    row("Donors",
        graph("Leased memory", "How much of each donor's memory is in use?", "bytes",
              (each("rocegw_memory_leased_bytes"), "{{instance}}")),
        graph("Sessions", "How many sessions has each donor?", "short", (each("rocegw_memory_sessions"), "{{instance}}")),
        graph("New sessions", "Who wants memory, and is anybody refused?", "ops",
              (rate("rocegw_memory_leases_granted_total"), "{{instance}} leases"),
              (rate("rocegw_memory_sessions_refused_total"), "{{instance}} refused sessions"))),
    row("Shared block pools",
        graph("Blocks", "How large are the pools, and how full is each donor?", "short",
              (each("rocegw_memory_pool_blocks"), "{{instance}} blocks"),
              (each("rocegw_memory_pool_values"), "{{instance}} values")),
        graph("Queue pairs of members", "How many members have a connection to each donor?", "short",
              (each("rocegw_memory_pool_connections"), "{{instance}}")),
        graph("Joins", "Who joins, and is anybody refused?", "ops",
              (f"sum by (instance, path) (rate(rocegw_memory_pool_joins_total{{{MEMORY}}}{RATE}))", "{{instance}} by {{path}}"),
              (f"sum by (instance, reason) (rate(rocegw_memory_pool_refused_joins_total{{{MEMORY}}}{RATE}))",
               "{{instance}} refused: {{reason}}"))))
