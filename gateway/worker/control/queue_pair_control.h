// SPDX-License-Identifier: Apache-2.0
// Control messages for queue pairs, the peers and groups of endpoints, and peer rules. Belongs to
// one worker.
#pragma once

#include <memory>

#include "gateway/transport/outbox.h"
#include "gateway/worker/channels/channel_bindings.h"
#include "gateway/worker/objects/group_table.h"
#include "gateway/worker/objects/native_congestion.h"
#include "gateway/worker/objects/qp_activity.h"
#include "gateway/worker/objects/session_table.h"
#include "gateway/worker/objects/tombstones.h"
#include "gateway/worker/receive/flood_guard.h"
#include "gateway/worker/round.h"
#include "gateway/worker/send/transmit_queue.h"

namespace rocegw::worker {

class QueuePairControl {
 public:
  // Parts of the worker that the handlers use; they must outlive it.
  struct Uses {
    const Ports& ports;
    SessionTable& sessions;
    QpTable& qps;
    QpActivity& activity;
    Scheduler& scheduler;
    GroupTable& groups;
    Tombstones& tombstones;
    ChannelBindings& bindings;
    FloodGuard& flood;
    const NativeCongestion& congestion;
    const transport::WorkerTables& tables;
    transport::Outbox& outbox;
    const Round& round;
  };
  explicit QueuePairControl(const Uses& uses) : uses_(uses) {}

  ControlReply Do(const PrepareQp& body);
  ControlReply Do(const LinkQp& body);
  ControlReply Do(const UnlinkQp& body);
  ControlReply Do(const ModifyQp& body);
  ControlReply Do(const QueryQp& body);
  ControlReply Do(const MoveEndpoint& body);
  ControlReply Do(const SnapshotQps& body);
  // UD queue pairs and endpoints check the rules with each message; connected queue pairs are
  // checked here.
  ControlReply Do(const UsePeerRules& body);
  ControlReply Do(const LinkPeer& body);
  ControlReply Do(const UnlinkPeer& body);
  ControlReply Do(const LinkGroup& body);
  ControlReply Do(const UnlinkGroup& body);

 private:
  struct Parts;

  int FindParts(const verbs::QpConfig& config, Parts& parts);
  std::unique_ptr<transport::QueuePair> Make(const verbs::QpConfig& config);
  QpSlot* Find(SessionId session, Qpn qpn);
  bool FailIfForbidden(QpSlot& slot, const verbs::PeerRules* rules);

  const Uses uses_;
};

}  // namespace rocegw::worker
