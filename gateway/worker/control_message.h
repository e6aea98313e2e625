// SPDX-License-Identifier: Apache-2.0
// The closed list of what the control thread tells a worker and what a worker tells back. The
// control thread builds and allocates; a message carries finished objects; the worker links them
// between bursts. Removal is unlink, reply, free: when the reply has come no worker uses the object
// any more. Both directions are SPSC rings (worker.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/ids.h"
#include "gateway/channel/channel_set.h"
#include "gateway/memory/memory_op.h"
#include "gateway/tenant/share.h"
#include "gateway/transport/peer.h"
#include "gateway/verbs/channel_target.h"
#include "gateway/verbs/completion_queue.h"
#include "gateway/verbs/qp_config.h"
#include "gateway/verbs/types.h"
#include "gateway/wire/datagram.h"

namespace rocegw::memory {
class Copier;
}
namespace rocegw::port {
class PacketPort;
}

namespace rocegw::worker {

// A session as one worker sees it. Everything pointed to outlives the UnlinkSession reply.
struct LinkSession {
  SessionId session;
  memory::MemorySpace* space = nullptr;  // how its memory is reached
  memory::Copier* copier =
      nullptr;  // set when the worker must not touch the memory itself (untrusted pool)
  rocegw_worker_line* line = nullptr;  // ours, client reads: need_wakeup
  int wake_fd = -1;                    // eventfd the client writes; this worker reads
  tenant::Share* share = nullptr;      // its pool's; nullptr: of no pool
  // It is an XRC domain, which several sessions share: it has queue pairs that receive (their
  // configurations name it) and no memory. Told to the worker of the domain only.
  bool xrc_domain = false;
};
// The worker destroys nothing: QPs, CQs and regions of the session were unlinked before.
struct UnlinkSession {
  SessionId session;
};
struct AddDoorbellPage {
  SessionId session;
  uint32_t page = 0;                       // index, ascending from 0
  rocegw_doorbell_page* memory = nullptr;  // client memory: untrusted
};
struct LinkCq {
  verbs::CqConfig config;
};
// It goes on in another ring, with what the client has not polled; ENOSPC: that is more than
// `most`.
struct ResizeCq {
  SessionId session;
  uint32_t cq_handle = 0;
  uint32_t entries = 0;
  uint32_t most = 0;  // at most `entries`
  rocegw_cqe* ring = nullptr;
};
struct ModerateCq {
  SessionId session;
  uint32_t cq_handle = 0;
  verbs::CqModeration* moderation = nullptr;  // outlives the UnlinkCq reply
  uint32_t count = 0;
  Duration period;
};
struct UnlinkCq {
  SessionId session;
  uint32_t cq_handle = 0;
};
// An RC queue pair that is nobody's yet, with the memory that it will need. LinkQp of its number
// makes it somebody's, UnlinkQp with session 0 removes it.
struct PrepareQp {
  Qpn qpn;
  verbs::QpShape shape;
};
struct LinkQp {
  verbs::QpConfig config;
};
// Stops the QP at once; its completions that the client has not polled stay where they are.
struct UnlinkQp {
  SessionId session;
  Qpn qpn;
};
struct ModifyQp {
  SessionId session;
  Qpn qpn;
  uint32_t mask = 0;
  verbs::QpAttributes attributes;
  // To RTR: the peer is behind that gateway, and requests leave by a channel; without: as plain
  // RoCEv2.
  std::optional<verbs::ChannelTarget> channel;
};
struct QueryQp {
  SessionId session;
  Qpn qpn;
};
// Whom that pool's queue pairs may talk to from now on. Those that are connected to somebody else
// fail.
struct UsePeerRules {
  const tenant::Share* pool = nullptr;
  const verbs::PeerRules* rules = nullptr;  // outlives the queue pairs; nullptr: any
};
// Whom endpoints of the session may name from now on, and no longer: messages under way go on.
struct LinkPeer {
  SessionId session;
  uint32_t handle = 0;  // the client's
  transport::Peer peer;
};
struct UnlinkPeer {
  SessionId session;
  uint32_t handle = 0;
};
// Endpoints of the session may be members from now on, and no longer.
struct LinkGroup {
  verbs::GroupConfig config;
};
struct UnlinkGroup {
  SessionId session;
  Qpn number;
};
// That queue pair gets what is sent to the group, or no longer. Told to every worker: packets for
// groups arrive at any, which hands a copy to each that has receivers.
struct Multicast {
  SessionId session;
  uint32_t device = 0;
  wire::Gid group;
  Qpn qpn;
  bool attached = true;
};
struct LinkRegion {
  verbs::RegionConfig config;
};
// What the key of a linked region stands for from now on.
struct RelinkRegion {
  verbs::RegionConfig config;
};
struct UnlinkRegion {
  SessionId session;
  MemoryKey key;
};
struct LinkWindow {
  SessionId session;
  uint32_t name = 0;                      // MemoryWindow::NameOf
  verbs::MemoryWindow* window = nullptr;  // outlives the UnlinkWindow reply
};
struct UnlinkWindow {
  SessionId session;
  uint32_t name = 0;
};
// On one worker: that of all its queue pairs, or of its XRC domain.
struct LinkSrq {
  verbs::SrqConfig config;
};
struct UnlinkSrq {
  SessionId session;
  uint32_t srq_handle = 0;
};
struct ArmSrq {
  SessionId session;
  uint32_t srq_handle = 0;
  uint32_t limit = 0;
};
// More slots: the old ones stand there too, and in the ring of their order at the same indices.
struct ResizeSrq {
  SessionId session;
  uint32_t srq_handle = 0;
  uint32_t entries = 0;
  const uint8_t* order = nullptr;
  const uint8_t* slots = nullptr;
};
struct QuerySrq {
  SessionId session;
  uint32_t srq_handle = 0;
};
// A management datagram to send from QP1.
struct SendMad {
  uint32_t device = 0;  // index of the daemon's port
  wire::Path path;
  Qpn destination = kGsiQpn;
  std::array<uint8_t, 256> mad{};
};
// Rows for every QP of a session (or of all, session 0).
struct SnapshotQps {
  SessionId session;
};

// Rows for every channel.
struct SnapshotChannels {};
struct SnapshotPeers {};  // what channels to each peer have done
// Rows for every shared receive queue.
struct SnapshotSrqs {};

// From now on these are the worker's queues, by device index: the same ones with or without what
// captures put around them. Packets that are under way belong to the queue inside.
struct UsePorts {
  std::vector<port::PacketPort*> ports;
};

// Channels to other gateways may be opened and taken from now on. Once.
struct UseChannels {
  channel::ChannelOptions options;
};

// The fleet says whether that address is a gateway's of it (ChannelSet::SetMember).
struct NameMember {
  wire::Gid peer;
  bool member = false;
};

struct ControlMessage {
  uint64_t cookie = 0;  // comes back in the reply; 0: no reply wanted
  std::variant<std::monostate, LinkSession, UnlinkSession, AddDoorbellPage, LinkCq, ResizeCq,
               ModerateCq, UnlinkCq, PrepareQp, LinkSrq, UnlinkSrq, ArmSrq, ResizeSrq, QuerySrq,
               LinkQp, UnlinkQp, ModifyQp, QueryQp, UsePeerRules, LinkPeer, UnlinkPeer, LinkGroup,
               UnlinkGroup, Multicast, LinkRegion, RelinkRegion, UnlinkRegion, LinkWindow,
               UnlinkWindow, SendMad, SnapshotQps, SnapshotChannels, SnapshotPeers, SnapshotSrqs,
               UsePorts, UseChannels, NameMember>
      body;
};

struct QpSnapshot {
  SessionId session;
  uint32_t qp_handle = 0;
  Qpn qpn;
  verbs::QpType type = verbs::QpType::kRc;
  verbs::QpAttributes attributes;  // state is the current one
  Psn next_send_psn;
  Psn oldest_unacked_psn;
  Psn expected_psn;
  uint32_t send_outstanding = 0;  // work requests
  uint64_t sends_completed = 0;
  uint64_t receives_completed = 0;
  uint64_t bytes_sent = 0;  // payload
  uint64_t bytes_received = 0;
  uint64_t retransmits = 0;
  bool on_channel = false;  // requests leave by a channel: that one
  Qpn channel = kInvalidQpn;
  std::vector<Qpn> beside;  // channels that it is spread over as well
  // Why the channel that was meant for it is not used; kNone: it is, or none was.
  wire::ChannelReason declined = wire::ChannelReason::kNone;
};

struct SrqSnapshot {
  SessionId session;
  uint32_t srq_handle = 0;
  uint32_t limit = 0;
  uint32_t waiting = 0;  // receives
  uint64_t taken = 0;
  uint64_t limit_events = 0;
};

// Queue pairs that have failed since they may not talk to that peer any more.
struct PeerRevoked {
  wire::Gid peer;
  uint32_t queue_pairs = 0;
};

// Answer to a message with a cookie.
struct ControlReply {
  int error = 0;                // errno
  std::vector<QpSnapshot> qps;  // QueryQp (one), SnapshotQps
  std::vector<channel::ChannelSnapshot> channels;
  std::vector<channel::PeerTraffic> peers;
  std::vector<SrqSnapshot> srqs;
  std::vector<PeerRevoked> revoked;  // UsePeerRules
  // UnlinkCq: completion event records that this worker has put on the CQ's channel, ever. The
  // client waits until it has acknowledged that many.
  uint64_t events_reported = 0;
  uint32_t srq_limit = 0;  // QuerySrq
};

inline ControlReply Failed(int error) {
  ControlReply reply;
  reply.error = error;
  return reply;
}

// What a worker reports by itself.
struct MadReceived {
  uint32_t device = 0;
  wire::RxMeta meta;
  Qpn source_qpn;
  std::array<uint8_t, 256> mad{};
};
struct AsyncEventRaised {
  SessionId session;
  verbs::AsyncEvent event = verbs::AsyncEvent::kQpFatal;
  uint32_t kind = 0;    // enum rocegw_object_kind
  uint32_t handle = 0;  // the client's
  uint64_t cookie = 0;
  Qpn qpn;
};
// The client broke the rules of the shared memory, or its process is gone: the session must end.
struct SessionStopped {
  SessionId session;
  const char* reason = "";  // static text, one line
};

// What a pool's programs send waits for a rate that is used up. At most once a second for each
// pool.
struct RateReached {
  const tenant::Share* pool = nullptr;
  tenant::Rate rate = tenant::Rate::kBytes;
  const tenant::RateNode* by = nullptr;  // whose rate
};

// The limit of channels of a pool, or of what is above it, is reached. At most once a second for
// each pool.
struct ChannelRefused {
  const tenant::Share* pool = nullptr;
  const tenant::QuotaNode* by = nullptr;  // whose limit
};

// A gateway does not know our channels any more, or does not take one: what discovery found may not
// hold any longer.
struct PeerChanged {
  wire::Gid peer;
};

struct WorkerMessage {
  uint64_t cookie = 0;  // of the message that this answers; 0: unasked
  std::variant<std::monostate, ControlReply, MadReceived, AsyncEventRaised, SessionStopped,
               RateReached, ChannelRefused, PeerChanged>
      body;
};

}  // namespace rocegw::worker
