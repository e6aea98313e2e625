# SPDX-License-Identifier: Apache-2.0
"""Step of remote memory: donors, mounts and a shared block pool. Takes a Scene."""

from prometheus import rising
from remote_memory import RemoteMemory


def remote_memory(scene):
    """A donor of remote memory ends, another one drains, the disk of a disk copy is full"""
    memory = RemoteMemory(scene.fleet)
    scene.until_shows(rising("rocegw_memory_files_written_bytes_total"), rising("rocegw_memory_files_read_bytes_total"),
                      rising("rocegw_memory_files_no_room_total"), rising("rocegw_memory_session_disk_written_bytes_total"),
                      doing=lambda: (memory.touch(memory.plain), memory.touch(memory.copied)))
    scene.until_fires("RocegwMemoryDiskCopyFails", doing=lambda: memory.touch(memory.copied))
    scene.until_shows(rising("rocegw_memory_sessions_refused_total"), doing=memory.ask_without_quota)
    scene.until_shows(rising("rocegw_memory_leases_granted_total"), doing=memory.come_and_go)
    scene.until_shows('max(rocegw_donors{state="serving"})', "max(rocegw_donors_donated_bytes)", "max(rocegw_agent_donors)",
                      rising("rocegw_donor_reports_total"))
    memory.fill_donors()
    scene.until_fires("RocegwDonorsFull")
    memory.make_room()
    scene.until_shows(rising('rocegw_donor_searches_total{end="no_room"}'), rising("rocegw_agent_donor_questions_total"),
                      doing=memory.ask_the_fleet)
    scene.fleet.kill(scene.fleet.agents[1].daemon)
    scene.until_fires("RocegwDonorSilent")
    scene.fleet.agents[1].start()
    scene.in_order()
    scene.until_shows(rising("rocegw_memory_pool_joins_total"), rising('rocegw_memory_pool_refused_joins_total{reason="secret"}'),
                      "max(rocegw_memory_pool_values)", doing=memory.join_pool)
    scene.until_fires("RocegwBlockPoolStrangers", doing=memory.join_pool)
    memory.stay_in_pool()
    scene.until_shows("max(rocegw_memory_pool_connections)")
    memory.lose_pool()
    scene.until_fires("RocegwBlockDonorGone")
    memory.bring_pool_back()
    memory.lose_donor()
    scene.until_fires("RocegwMemoryPagesLost", "RocegwMemoryLacksReplicas",
                      doing=lambda: (memory.read(memory.plain), memory.read(memory.copied)))
    scene.until_shows(rising("rocegw_memory_files_failed_total"), doing=lambda: memory.read(memory.plain))
    scene.until_shows(rising("rocegw_memory_session_disk_read_bytes_total"), doing=lambda: memory.read(memory.copied))
    memory.bring_donor_back()
    scene.until_shows(rising("rocegw_memory_session_restored_bytes_total"))
    scene.until_shows(rising('rocegw_refused_donors_total{reason="foreign_address"}'), doing=memory.announce_address_of_nobody)
    memory.drain()
    scene.until_shows("max(rocegw_memory_draining)", rising("rocegw_memory_session_returned_leases_total"))
    memory.end()
    scene.fleet.end()
