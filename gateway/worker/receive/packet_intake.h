// SPDX-License-Identifier: Apache-2.0
// Datagrams from the ports and from other workers. Those of other workers' queue pairs are handed
// to their workers. Payloads lie in the port's or ring's memory, so each burst ends with the memory
// operations that place them. Belongs to one worker.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/worker/handoff.h"
#include "gateway/worker/memory/memory_executor.h"
#include "gateway/worker/receive/demultiplexer.h"
#include "gateway/worker/receive/flood_guard.h"
#include "gateway/worker/receive/pool_queues.h"

namespace rocegw::worker {

class PacketIntake {
 public:
  // Parts of the worker that the intake uses; they must outlive it.
  struct Uses {
    WorkerIndex worker = 0;
    const port::SteeringTable& steering;
    const std::vector<WorkerInbox*>& inboxes;  // inboxes of all workers, by index
    const Ports& ports;
    QpTable& qps;
    Scheduler& scheduler;
    const MulticastGroups& multicast;
    MemoryExecutor& memory;
    FloodGuard& flood;
    const DiscoveryLimits& discovery;
    const channel::ChannelSet& channels;
    PoolQueues& waiting;
    Demultiplexer& demultiplexer;
    metrics::WorkerCounters& counters;
  };
  explicit PacketIntake(const Uses& uses);

  // Return true if there was something.
  bool ReceiveAll(TimePoint now);
  // Processes the packets that wait for their pool's time; `all`: whatever time the pools have.
  bool TakeWaiting(TimePoint now, bool all);
  bool ReceiveHandedOver(TimePoint now);

 private:
  void FollowFlood(TimePoint now);
  void NamePeers(TimePoint now);
  size_t KeepPassing(std::span<wire::RxDatagram> burst);
  size_t ReceiveBurst(uint32_t device, std::span<wire::RxDatagram> burst, TimePoint now);
  void TakeByPool(uint32_t device, std::span<const wire::RxDatagram> burst, TimePoint now);
  bool PutBack(const Account& pool, uint32_t device, const wire::RxDatagram& datagram);
  void TakeSome(PoolQueues::Queue& queue, TimePoint now);
  uint32_t TakeHandedOver(HandoffRing& datagrams, TimePoint now);
  void Take(uint32_t device, const wire::RxDatagram& datagram, TimePoint now);
  void TakeMulticast(uint32_t device, const wire::RxDatagram& datagram, TimePoint now);
  void HandOver(WorkerIndex owner, uint32_t device, const wire::RxDatagram& datagram);

  const Uses uses_;
  std::vector<wire::RxDatagram> received_;
  std::vector<bool> unfiltered_;  // ports that cannot filter, by device
  bool filter_applied_ = false;
};

}  // namespace rocegw::worker
