// SPDX-License-Identifier: Apache-2.0
// Control messages for ports, channels, other gateways, multicast and management datagrams. Belongs
// to one worker.
#pragma once

#include "gateway/channel/channel_set.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/worker/control/control_message.h"
#include "gateway/worker/receive/discovery_limits.h"
#include "gateway/worker/receive/multicast_groups.h"
#include "gateway/worker/round.h"
#include "gateway/worker/send/transmit_queue.h"

namespace rocegw::worker {

class NetworkControl {
 public:
  // Parts of the worker that the handlers use; they must outlive it.
  struct Uses {
    Ports& ports;
    TransmitQueue& transmit;
    channel::ChannelSet& channels;
    MulticastGroups& multicast;
    DiscoveryLimits& discovery;
    const Round& round;
    metrics::WorkerCounters& counters;
  };
  // The algorithm and policy are those of channels.
  NetworkControl(const Uses& uses, const flow::CcConfig& congestion, const flow::CcPolicy& policy)
      : uses_(uses), congestion_(congestion), policy_(policy) {}

  ControlReply Do(const SendMad& body);
  ControlReply Do(const UsePorts& body);
  ControlReply Do(const UseChannels& body);
  ControlReply Do(const NameMember& body);
  ControlReply Do(const KnowPeer& body);
  ControlReply Do(const UseKeys& body);
  ControlReply Do(const Multicast& body);
  ControlReply Do(const SnapshotChannels& body);
  ControlReply Do(const SnapshotPeers& body);

 private:
  const Uses uses_;
  const flow::CcConfig congestion_;
  const flow::CcPolicy policy_;
  uint32_t gsi_psn_ = 0;
};

}  // namespace rocegw::worker
