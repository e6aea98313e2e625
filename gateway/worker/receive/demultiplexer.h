// SPDX-License-Identifier: Apache-2.0
// Way of a datagram of this worker to its queue pair, multicast receivers, channel or the
// connection manager. Belongs to one worker.
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
    const MulticastGroups& multicast;
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
  metrics::DropReason ToChannelEach(uint32_t device, const wire::RxPacket& packet, TimePoint now);
  metrics::DropReason Deliver(const channel::Delivery& delivery, TimePoint now);
  QpSlot* ReceiverOf(const channel::Delivery& delivery, TimePoint now);

  const Uses uses_;
  IpIdWatch ip_ids_;
};

}  // namespace rocegw::worker
