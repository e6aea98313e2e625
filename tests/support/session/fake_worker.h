// SPDX-License-Identifier: Apache-2.0
// Stand-in of a worker without a data path: takes control messages from its rings, lists linked
// objects, answers, and records each message that a correct control thread would not send (a second
// link, an unlink of an unknown object, a session removed before its objects). Runs in the caller's
// thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gateway/base/unique_fd.h"
#include "gateway/worker/control/control_message.h"
#include "gateway/worker/control/worker_link.h"

namespace rocegw::testing {

class FakeWorker {
 public:
  // The caller keeps control_wake_fd.
  FakeWorker(WorkerIndex index, int control_wake_fd, size_t ring_capacity = 4096);

  // Takes and answers at most `limit` messages. Returns true if there was one.
  bool Pump(size_t limit = SIZE_MAX);
  // Sends a message that answers no request.
  void Raise(worker::WorkerMessage message);

  struct LinkedQp {
    verbs::QpConfig config;
    verbs::QpAttributes attributes;
    std::optional<verbs::ChannelTarget> channel;                // from the last ModifyQp to RTR
    wire::ChannelReason declined = wire::ChannelReason::kNone;  // result of that
    transport::EndpointStatus endpoint;
    bool notify = false;  // of the last MoveEndpoint
  };
  struct Session {
    worker::LinkSession link;
    std::vector<rocegw_doorbell_page*> pages;
    std::map<uint32_t, verbs::CqConfig> cqs;           // by handle
    std::map<uint32_t, worker::ModerateCq> moderated;  // by CQ handle: as told last
    std::map<uint32_t, verbs::SrqConfig> srqs;         // by handle; limit: as armed last
    std::map<uint32_t, LinkedQp> qps;                  // by QPN
    std::map<uint32_t, verbs::RegionConfig> mrs;       // by key
    std::map<uint32_t, verbs::MemoryWindow*> windows;  // by name
    std::map<uint32_t, transport::Peer> peers;         // by handle
    std::map<uint32_t, verbs::GroupConfig> groups;     // by number
  };

  worker::WorkerLink link;
  std::map<uint32_t, Session> sessions;
  std::multimap<std::pair<uint32_t, wire::Gid>, uint32_t> multicast;  // device and group to QPN
  std::set<uint32_t> ready;                                           // QPNs in pools' reserves
  std::set<wire::Gid> members;                                        // members of the fleet
  std::vector<std::string> broken_rules;
  std::vector<worker::SendMad> mads;
  std::vector<port::PacketPort*> ports;  // of the last UsePorts
  FleetKeys keys;                        // of the last UseKeys
  channel::ChannelOptions channels;      // of the last UseChannels
  std::vector<channel::ChannelSnapshot> channel_rows;
  std::vector<channel::PeerTraffic> peer_rows;
  std::map<uint32_t, uint64_t> cq_events;  // by CQ handle: what UnlinkCq reports
  int fail_next = 0;   // errno for the next Link and Relink messages, then cleared
  int fail_after = 0;  // number of messages before them that succeed
  int fail_times = 1;  // number of messages that fail
  std::function<void(const verbs::RegionConfig&)> on_relink;  // called for each RelinkRegion

 private:
  int Apply(const worker::LinkSession& m);
  int Apply(const worker::UnlinkSession& m);
  int Apply(const worker::UseCopier& m);
  int Apply(const worker::AddDoorbellPage& m);
  int Apply(const worker::LinkCq& m);
  int Apply(const worker::ResizeCq& m);
  int Apply(const worker::ModerateCq& m);
  int Apply(const worker::UnlinkCq& m, worker::ControlReply& reply);
  int Apply(const worker::LinkSrq& m);
  int Apply(const worker::UnlinkSrq& m);
  int Apply(const worker::ArmSrq& m);
  int Apply(const worker::ResizeSrq& m);
  int Apply(const worker::QuerySrq& m, worker::ControlReply& reply);
  int Apply(const worker::SnapshotSrqs& m, worker::ControlReply& reply);
  int Apply(const worker::PrepareQp& m);
  int Apply(const worker::LinkQp& m);
  int Apply(const worker::UnlinkQp& m);
  int Apply(const worker::ModifyQp& m, worker::ControlReply& reply);
  int Apply(const worker::QueryQp& m, worker::ControlReply& reply);
  int Apply(const worker::MoveEndpoint& m);
  int Apply(const worker::UsePeerRules& m, worker::ControlReply& reply);
  int Apply(const worker::NameMember& m);
  int Apply(const worker::KnowPeer& m);
  int Apply(const worker::UseKeys& m);
  int Apply(const worker::LinkPeer& m);
  int Apply(const worker::UnlinkPeer& m);
  int Apply(const worker::LinkGroup& m);
  int Apply(const worker::UnlinkGroup& m);
  int Apply(const worker::Multicast& m);
  int Apply(const worker::LinkRegion& m);
  int Apply(const worker::RelinkRegion& m);
  int Apply(const worker::UnlinkRegion& m);
  int Apply(const worker::LinkWindow& m);
  int Apply(const worker::UnlinkWindow& m);
  int Apply(const worker::SnapshotQps& m, worker::ControlReply& reply);

  worker::ControlReply Answer(const worker::ControlMessage& message);
  Session* Find(SessionId id, const char* what);
  Session* FindOrNull(SessionId id);
  int Broken(const std::string& rule);
  int TakeFailure();

  WorkerIndex index_;
  UniqueFd wake_;
};

}  // namespace rocegw::testing
