# SPDX-License-Identifier: Apache-2.0
"""What happens to a fleet so that every panel and every alert has something to show: traffic, loss, marks, damage, quotas,
denied programs, a drain, a rejected object, daemons that die, a lost store.

Each step lasts until Prometheus has seen what is seen of it alone, however long that takes (prometheus.MOST)."""

import functools

from daemon_steps import forgotten, killed, locked_store, lost_store, migration, store_away, stuck_stop, upgrade
from memory_step import remote_memory
from scene import Scene
from traffic_steps import (channels, denied, drain, flooded, held_up, late_receiver, misuse, native, no_way, nobody_there, quotas,
                           rejected, starved)

ORDER = (migration, upgrade, channels, remote_memory, no_way, nobody_there, native, late_receiver, misuse, quotas, denied,
         rejected, drain, held_up, flooded, starved, stuck_stop, locked_store, killed, store_away, lost_store, forgotten)


def steps(fleet, prometheus):
    """(name, what it is, function) in their order."""
    scene = Scene(fleet, prometheus)
    return [(step.__name__, step.__doc__, functools.partial(step, scene)) for step in ORDER]
