// SPDX-License-Identifier: Apache-2.0
// Way of a datagram of this worker to its queue pair, multicast receivers, channel or the
// connection manager. A frame of a channel whose pool has used up its time joins the pool's queue
// once the channel has taken it. Belongs to one worker.
#pragma once

#include <array>
#include <cstdint>

#include "gateway/channel/channel_set.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/port/steering.h"
#include "gateway/transport/outbox.h"
#include "gateway/wire/codec.h"
#include "gateway/worker/channels/channel_bindings.h"
#include "gateway/worker/control/control_handler.h"
#include "gateway/worker/objects/group_table.h"
#include "gateway/worker/receive/discovery_limits.h"
#include "gateway/worker/receive/flood_guard.h"
#include "gateway/worker/receive/ip_id_watch.h"
#include "gateway/worker/receive/multicast_groups.h"
#include "gateway/worker/receive/pool_queues.h"

namespace rocegw::worker {

class Demultiplexer {
 public:
  // Parts of the worker that the demultiplexer uses; they must outlive it.
  struct Uses {
    WorkerIndex worker = 0;
    const port::SteeringTable& steering;
    QpTable& qps;
    QpActivity& activity;
    Scheduler& scheduler;
    GroupTable& groups;
    const SessionTable& sessions;
    const MulticastGroups& multicast;
    PoolQueues& waiting;
    channel::ChannelSet& channels;
    ChannelBindings& bindings;
    DiscoveryLimits& discovery;
    FloodGuard& flood;
    ControlHandler& handler;
    ControlSender& control;
    transport::Outbox& outbox;
    metrics::WorkerCounters& counters;
  };
  explicit Demultiplexer(const Uses& uses) : uses_(uses) {}

  // Handles a datagram whose queue pair, if there is one, belongs to this worker. A multicast
  // datagram goes to the receivers on this worker.
  void OnDatagram(uint32_t device, const wire::RxDatagram& datagram, TimePoint now);
  // Handles a packet that has waited for its pool's time.
  void OnWaiting(const WaitingPacket& packet, TimePoint now);
  // Returns the pool of the queue pair or group of endpoints with that number; nullptr: none.
  Account* PoolOf(Qpn receiver) const;
  // Returns the pool that a waiting packet is for; nullptr: none.
  Account* PoolOf(const WaitingPacket& packet) const;
  // Returns true if the pool has used up its time, or if earlier packets wait in its queue.
  bool MustWait(const Account& pool) const {
    return (!uses_.waiting.empty() && uses_.waiting.Waits(pool)) ||
           uses_.scheduler.InDeepDebt(pool);
  }
  // Reports that all memory operations of the datagrams so far are done.
  void EndBurst() { uses_.channels.ForgetOpened(); }

 private:
  metrics::DropReason Dispatch(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason ToQueuePair(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason ToQueuePairOrLater(uint32_t device, const wire::RxPacket& packet,
                                         TimePoint now);
  metrics::DropReason ToControl(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason ToGroup(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  using Pools = std::array<const Account*, 8>;
  bool LosesCopy(Qpn member, Pools& served);
  metrics::DropReason ToMember(Qpn member, uint32_t device, const wire::RxPacket& packet,
                               TimePoint now);
  metrics::DropReason ToChannel(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason ToChannelNow(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason ToChannelLater(Account& pool, uint32_t device, const wire::RxPacket& packet,
                                     TimePoint now);
  metrics::DropReason ToChannelEach(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason Deliver(const channel::Delivery& delivery, TimePoint now);
  QpSlot* ReceiverOf(const channel::Delivery& delivery, TimePoint now);

  const Uses uses_;
  IpIdWatch ip_ids_;
};

}  // namespace rocegw::worker
