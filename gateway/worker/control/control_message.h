// SPDX-License-Identifier: Apache-2.0
// Messages between the control thread and a worker, in both directions. The control thread builds
// and allocates objects; a message carries finished objects; the worker links them between bursts.
// Removal takes three steps: unlink, reply, free. After the reply, no worker uses the object. Both
// directions are SPSC rings (worker_link.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/base/fleet_keys.h"
#include "gateway/base/ids.h"
#include "gateway/channel/channel_set.h"
#include "gateway/memory/memory_op.h"
#include "gateway/tenant/share.h"
#include "gateway/tenant/slot_share.h"
#include "gateway/transport/endpoint/endpoint_state.h"
#include "gateway/transport/endpoint/peer.h"
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

// Session as one worker knows it. All pointers must outlive the UnlinkSession reply.
struct LinkSession {
  SessionId session;
  memory::MemorySpace* space = nullptr;  // access to the client's memory
  // Set when the worker must not touch the memory itself (untrusted pool).
  memory::Copier* copier = nullptr;
  rocegw_worker_line* line = nullptr;  // the gateway's memory, which the client reads: need_wakeup
  int wake_fd = -1;                    // eventfd the client writes; this worker reads
  tenant::Share* share = nullptr;      // its pool's share; nullptr: no pool
  tenant::SlotShare* slot = nullptr;   // limits of its attach socket; nullptr: the pool's only
  // The session is an XRC domain, which several sessions share. It has receiving queue pairs, whose
  // configurations name it, and no memory. Sent to the domain's worker only.
  bool xrc_domain = false;
};
// Removes a session. Its queue pairs, CQs and regions must be unlinked before.
struct UnlinkSession {
  SessionId session;
};
// Executes the operations of a session by a copier from now on, as for an untrusted one. The
// session has no queue pairs: on a channel they use other frames with a copier.
struct UseCopier {
  SessionId session;
  memory::Copier* copier = nullptr;
};
struct AddDoorbellPage {
  SessionId session;
  uint32_t page = 0;                       // index, ascending from 0
  rocegw_doorbell_page* memory = nullptr;  // client memory: untrusted
};
struct LinkCq {
  verbs::CqConfig config;
};
// Moves the CQ to another ring with the completions that the client has not polled. Fails with
// ENOSPC if there are more than `most`.
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
// Makes an RC queue pair for a reserve, with the memory that it will need. LinkQp with its number
// gives it to a session; UnlinkQp with session 0 removes it.
struct PrepareQp {
  Qpn qpn;
  verbs::QpShape shape;
};
struct LinkQp {
  verbs::QpConfig config;
};
// Stops the queue pair at once. Completions that the client has not polled stay in the CQ.
struct UnlinkQp {
  SessionId session;
  Qpn qpn;
};
struct ModifyQp {
  SessionId session;
  Qpn qpn;
  uint32_t mask = 0;
  verbs::QpAttributes attributes;
  // To RTR: gateway of the peer, for requests by a channel; nothing: plain RoCEv2.
  std::optional<verbs::ChannelTarget> channel;
};
struct QueryQp {
  SessionId session;
  Qpn qpn;
};
// Changes the state of an endpoint (transport::EndpointQueuePair::Move).
struct MoveEndpoint {
  SessionId session;
  Qpn qpn;
  transport::EndpointState to = transport::EndpointState::kReady;
  bool notify = false;
};
// Sets the addresses that the pool's queue pairs may talk to. Queue pairs connected to other
// addresses fail.
struct UsePeerRules {
  const tenant::Share* pool = nullptr;
  const verbs::PeerRules* rules = nullptr;  // outlives the queue pairs; nullptr: any
};
// Add and remove a peer that endpoints of the session may name. Messages in flight are not
// affected.
struct LinkPeer {
  SessionId session;
  uint32_t handle = 0;  // the client's
  transport::Peer peer;
};
struct UnlinkPeer {
  SessionId session;
  uint32_t handle = 0;
};
// Add and remove a group that endpoints of the session may join.
struct LinkGroup {
  verbs::GroupConfig config;
};
struct UnlinkGroup {
  SessionId session;
  Qpn number;
};
// Attaches the queue pair to the multicast group, or detaches it. Sent to every worker: packets for
// groups arrive at any worker, which hands a copy to each worker with receivers.
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
// Replaces the region behind a key.
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
// Sent to one worker: that of the queue's queue pairs, or of its XRC domain.
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
// Enlarges the queue. The old slots keep their contents, and the order ring its indices.
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
// Sends a management datagram from QP1.
struct SendMad {
  uint32_t device = 0;  // index of the daemon's port
  wire::Path path;
  Qpn destination = kGsiQpn;
  std::array<uint8_t, 256> mad{};
};
// Requests rows for every queue pair of a session (session 0: of all).
struct SnapshotQps {
  SessionId session;
};

// Requests rows for every channel.
struct SnapshotChannels {};
struct SnapshotPeers {};  // requests traffic counts per peer of all channels
// Requests rows for every shared receive queue.
struct SnapshotSrqs {};

// Replaces the worker's queues, by device index: the same queues with or without the wrappers of
// captures. Packets in flight belong to the wrapped queue.
struct UsePorts {
  std::vector<port::PacketPort*> ports;
};

// Allows channels to other gateways, in both directions. Sent once.
struct UseChannels {
  channel::ChannelOptions options;
};

// Reports that the gateway asks this peer, or knows it as a gateway (cm::Acquaintance). The control
// thread bounds their number.
struct KnowPeer {
  wire::Gid peer;
  bool known = false;
};

// Reports whether the address belongs to a gateway of the fleet (ChannelSet::SetMember).
struct NameMember {
  wire::Gid peer;
  bool member = false;
};

// Keys of the fleet from now on (ChannelSet::SetKeys).
struct UseKeys {
  FleetKeys keys;
};

struct ControlMessage {
  uint64_t cookie = 0;  // comes back in the reply; 0: no reply wanted
  std::variant<std::monostate, LinkSession, UnlinkSession, UseCopier, AddDoorbellPage, LinkCq,
               ResizeCq, ModerateCq, UnlinkCq, PrepareQp, LinkSrq, UnlinkSrq, ArmSrq, ResizeSrq,
               QuerySrq, LinkQp, UnlinkQp, ModifyQp, QueryQp, MoveEndpoint, UsePeerRules, LinkPeer,
               UnlinkPeer, LinkGroup, UnlinkGroup, Multicast, LinkRegion, RelinkRegion,
               UnlinkRegion, LinkWindow, UnlinkWindow, SendMad, SnapshotQps, SnapshotChannels,
               SnapshotPeers, SnapshotSrqs, UsePorts, UseChannels, NameMember, KnowPeer, UseKeys>
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
  uint64_t bytes_sent = 0;  // payload bytes
  uint64_t bytes_received = 0;
  uint64_t retransmits = 0;
  bool on_channel = false;             // requests leave by the channel below
  bool fetch_operates = false;         // the peer takes wire::FrameKind::kFetchOperate
  transport::EndpointStatus endpoint;  // valid for endpoints only
  Qpn channel = kInvalidQpn;
  std::vector<Qpn> beside;  // further channels of its multipath
  // Reason why the intended channel was declined; kNone: it is used, or none was intended.
  wire::ChannelReason declined = wire::ChannelReason::kNone;
};

struct SrqSnapshot {
  SessionId session;
  uint32_t srq_handle = 0;
  uint32_t limit = 0;
  uint32_t waiting = 0;  // posted receives
  uint64_t taken = 0;
  uint64_t limit_events = 0;
};

// Number of queue pairs that failed because their peer is not allowed any more.
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
  // UnlinkCq: number of completion events that this worker ever put on the CQ's channel. The client
  // waits until it has acknowledged that many.
  uint64_t events_reported = 0;
  uint32_t srq_limit = 0;  // QuerySrq
};

inline ControlReply Failed(int error) {
  ControlReply reply;
  reply.error = error;
  return reply;
}

// Messages that a worker sends unasked.
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
// The client broke the rules of the shared memory, or its process is gone: the control thread must
// close the session.
struct SessionStopped {
  SessionId session;
  const char* reason = "";  // static text, one line
};

// Programs of the pool wait because a rate is used up. At most once a second for each pool.
struct RateReached {
  const tenant::Share* pool = nullptr;
  tenant::Rate rate = tenant::Rate::kBytes;
  const tenant::RateNode* by = nullptr;  // node whose rate it is
};

// The channel limit of the pool, or of a node above it, is reached. At most once a second for each
// pool.
struct ChannelRefused {
  const tenant::Share* pool = nullptr;
  const tenant::QuotaNode* by = nullptr;  // node whose limit it is
};

// A peer gateway no longer knows this gateway's channels, or refused one: its discovery result may
// be outdated.
struct PeerChanged {
  wire::Gid peer;
};

struct WorkerMessage {
  uint64_t cookie = 0;  // cookie of the answered message; 0: unasked
  std::variant<std::monostate, ControlReply, MadReceived, AsyncEventRaised, SessionStopped,
               RateReached, ChannelRefused, PeerChanged>
      body;
};

}  // namespace rocegw::worker
