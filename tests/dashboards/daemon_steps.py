# SPDX-License-Identifier: Apache-2.0
"""Steps of daemons and their stores: migrations, upgrades, daemons that die or cannot stop, lost stores. Each takes a Scene."""

import glob
import os
import signal
import sqlite3

from netlab.fleet import eventually
from netlab.held_threads import HeldThreads, threads_of
from netlab.job import LabError, LocalJob, run
from prometheus import MOST


def of_version(lab, program, version):
    """A copy of a program that calls itself by another version: its bytes are the same otherwise."""
    ours = run([program, "--version"]).split()[1].encode()
    with open(program, "rb") as file:
        text = file.read()
    if len(ours) != len(version) or text.count(ours + b"\0") == 0:
        raise LabError(f"{program} has no version {ours} to be changed to {version}")
    path = lab.path(f"{os.path.basename(program)}-{version.decode()}")
    with open(path, "wb") as file:
        file.write(text.replace(ours + b"\0", version + b"\0"))
    os.chmod(path, 0o755)
    return path


def migration(scene):
    """A storage cluster changes to gateways; a wave waits, and a node is lost within it"""
    migrate = scene.fleet.storage.plan(scene.fleet.lab, scene.fleet.controller)
    scene.fleet.controller.ctl("migrate", "start", migrate)
    scene.fleet.controller.ctl("migrate", "set", "files", "lost-after=1s", "retry-after=1s")
    scene.until_fires("RocegwMigrationWaits")
    with open(scene.fleet.storage.slow, "w", encoding="utf-8"):
        pass
    scene.fleet.controller.ctl("migrate", "approve", "files", "wave-2")
    scene.until_shows('sum(rocegw_migration_nodes{wave="wave-2",state=~"PENDING|READY"})', "sum(rocegw_migration_nodes_out_of_service)")
    for agent in scene.fleet.agents:
        scene.fleet.kill(agent.daemon)
    scene.until_fires("RocegwMigrationNodeLost")
    scene.until_shows('sum(rocegw_migration_paused{reason="lost-node"})')
    os.unlink(scene.fleet.storage.slow)
    for agent in scene.fleet.agents:
        agent.start()
    scene.in_order()
    scene.fleet.controller.ctl("migrate", "abort", "files")
    scene.until_shows('sum(rocegw_migration_state{state="ABORTED"})')


def upgrade(scene):
    """An upgrade of gateways whose agents are away, which a person ends"""
    for agent in scene.fleet.agents:
        scene.fleet.kill(agent.daemon)
    scene.fleet.controller.ctl("upgrade", "start", "away", "--all")
    scene.until_shows('sum(rocegw_upgrade_gateways{state="WAITING"})')
    scene.fleet.controller.ctl("upgrade", "abort", "away")
    scene.until_shows('sum(rocegw_upgrade_state{state="ABORTED"})')
    for agent in scene.fleet.agents:
        agent.start()
    scene.in_order()


def stuck_stop(scene):
    """A gateway that cannot come to its end: threads that serve calls do not return"""
    with HeldThreads([number for name, number in threads_of(scene.left.daemon.pid) if name.startswith("grpc")]):
        scene.left.daemon.signal(signal.SIGTERM)
        scene.until_fires("RocegwGatewayNotReady")
    scene.left.daemon.wait(MOST)
    scene.left.start_gateway()
    scene.in_order()


def locked_store(scene):
    """Somebody else holds the controller's database: a write waits, and gives up in the end"""
    database = sqlite3.connect(glob.glob(os.path.join(scene.fleet.controller.state, "fleet.db"))[0], isolation_level=None)
    for name, enough in (("Late", lambda write: scene.rounds(2)), ("Never", lambda write: write.wait(MOST))):
        database.execute("BEGIN IMMEDIATE")
        write = LocalJob(scene.fleet.controller.ctl_words("update", "tenant", "blue", f"display_name={name}"))
        enough(write)
        database.execute("COMMIT")
        write.wait(MOST)
    scene.until_fires("RocegwStoreSlow", "RocegwStoreFails")
    database.close()


def killed(scene):
    """Each daemon killed in turn; agents come back as an upgrade and one that was undone leave them"""
    scene.fleet.kill(scene.fleet.controller.daemon)
    scene.until_fires("RocegwNoController", "RocegwControllerDown", "RocegwAgentDisconnected")
    scene.fleet.controller.start()
    scene.rounds(2)
    for agent, version in zip(scene.fleet.agents, (b"0.0.9", b"0.2.1")):
        scene.fleet.kill(agent.daemon)
        agent.program = of_version(scene.fleet.lab, agent.program, version)
    scene.until_fires("RocegwAgentDown")
    for agent in scene.fleet.agents:
        agent.start()
    scene.until_fires("RocegwVersionsApart")
    scene.until_shows("rocegw_agent_desired_revision - rocegw_agent_applied_revision", doing=scene.stop_in_a_change)
    scene.fleet.kill(scene.right.daemon)
    scene.until_fires("RocegwAgentWithoutGateway")
    scene.until_shows("sum(rocegw_agent_failed_applies_total)")
    scene.right.start_gateway()
    scene.in_order()


def store_away(scene):
    """Another fleet's etcd ends, and comes back"""
    scene.fleet.other.kill_store()
    scene.until_fires("RocegwControllerNotReady", "RocegwNobodyKeepsHouse")
    scene.fleet.other.start_store()


def lost_store(scene):
    """The controller's database is lost"""
    scene.fleet.kill(scene.fleet.controller.daemon)
    for path in glob.glob(os.path.join(scene.fleet.controller.state, "fleet.db*")):
        os.unlink(path)
    scene.fleet.controller.start()
    eventually("gateways that follow another store",
               lambda: scene.fleet.controller.ctl("get", "gateways", "-o", "yaml").count("AnotherStore") == 2, MOST)
    scene.until_fires("RocegwUnadopted", "RocegwControllerBehind")


def forgotten(scene):
    """Somebody takes all jobs out of Prometheus' configuration"""
    scene.prometheus.forget_targets()
    scene.until_fires("RocegwGatewaysAbsent", "RocegwAgentsAbsent", "RocegwControllersAbsent")
