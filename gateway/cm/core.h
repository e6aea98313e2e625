// SPDX-License-Identifier: Apache-2.0
// Internal state of the connection manager: its tables and the operations that all handlers use.
// Not part of the interface (cm_engine.h). Handlers are functions over Core; state_table.h selects
// them. Control thread.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/base/containers/kept_nodes.h"
#include "gateway/base/containers/key_map.h"
#include "gateway/base/ids.h"
#include "gateway/base/secret_sequence.h"
#include "gateway/base/source_limits.h"
#include "gateway/base/time.h"
#include "gateway/base/timing/token_bucket.h"
#include "gateway/cm/cm_action.h"
#include "gateway/cm/cm_config.h"
#include "gateway/cm/cm_counters.h"
#include "gateway/cm/cm_id.h"
#include "gateway/cm/cm_types.h"
#include "gateway/cm/connection/backlog.h"
#include "gateway/cm/connection/connection.h"
#include "gateway/cm/connection/connection_table.h"
#include "gateway/cm/connection/early_requests.h"
#include "gateway/cm/connection/orphans.h"
#include "gateway/cm/connection/request_window.h"
#include "gateway/cm/deadline_set.h"
#include "gateway/cm/path/discovery.h"
#include "gateway/cm/path/port_table.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::cm {

// Time and actions of one call into the engine.
struct Step {
  TimePoint now;
  CmActions& actions;
};

// Received message with its source.
struct Inbound {
  const wire::CmMad& mad;
  const wire::RxMeta& meta;
  Qpn source_qpn;
};

struct Core {
  Core(const CmConfig& settings, RandomSource& source);

  CmConfig config;
  RandomSource& random;
  std::vector<LocalAddress> addresses;
  using Ids = std::unordered_map<CmHandle, Id>;
  Ids ids;
  KeptNodes<Ids> kept_ids;
  struct Holdings {
    size_t ids = 0;
    Id* first = nullptr;  // list of the ids
  };
  Backlog backlog;
  KeyMap<Holdings> owners;  // by SessionId; only sessions that own ids
  ConnectionTable connections;
  Orphans answered_orphans;
  Orphans ending_orphans;
  // Returns the pool of a session, among whose peers its orphans are shared.
  std::function<uint64_t(SessionId)> pool_of = [](SessionId owner) { return owner.value; };
  PortTable ports;
  DeadlineSet deadlines;
  EarlyRequests early;
  Discovery discovery;
  RequestWindow window;
  // Active connections whose REQ waits for discovery: peer, our communication ID.
  std::set<std::pair<wire::Gid, uint32_t>> undiscovered;
  TokenBucket strangers;  // limits answers to messages without a connection
  SourceLimits strangers_by_source;
  SourceLimits members_by_source;
  CmCounters counters;
  SecretKey guid_key;  // key of CaGuidFor
  uint64_t last_engine_handle = kEngineHandleBit;
  size_t wanted = 0;  // further connections to keep memory for

  // See CmEngine::Keep.
  void Keep(size_t connections_wanted);
  bool Refill();

  // Returns the CA GUID that this instance uses towards a peer, never 0. Peers match a REQ to old
  // connections by the GUID and may end a connection as stale. So each peer gets its own GUID,
  // which no other peer can compute, and a restarted gateway uses new ones.
  uint64_t CaGuidFor(const wire::Gid& peer) const;

  const LocalAddress* FindAddress(const wire::Gid& gid) const;
  // Returns the kind of the peer; never asks an own address.
  PeerKind Ask(const wire::Gid& source, const wire::Gid& peer, Step& step);
  // The same for the source of a request that no program has accepted.
  void AskStranger(const wire::Gid& source, const wire::Gid& peer, Step& step);
  NegotiationView ViewOf(const Connection& connection) const;
  Id* FindId(CmHandle handle);
  const Id* FindId(CmHandle handle) const;
  Connection* ConnectionOf(const Id& id);
  // Returns nullptr for an orphan.
  Id* IdOf(const Connection& connection) { return FindId(connection.id); }

  // Creates an id; nullptr: a limit is reached.
  Id* NewId(CmHandle handle, SessionId owner);
  // Frees the id's port and its table entries. The caller has dealt with its connection.
  void EraseId(Id& id);

  // Creates a connection and links it with the id, which has none.
  Connection& NewConnection(Id& id, bool active, Step& step);
  // Destroys the connection at once, without timewait. The reference is invalid afterwards.
  void DropConnection(Connection& connection);
  // Removes a request that the program has fetched, or that is destroyed, from the backlog of its
  // listener. Does nothing for other ids.
  void LeaveBacklog(Id& id);
  // Frees the REQ's slot in the request window.
  void LeaveWindow(Connection& connection, RequestWindow::End end, TimePoint now);
  // Separates the connection from its id, which may be destroyed, and lists it as an orphan.
  void Orphan(Connection& connection);
  // Puts an orphan into the list for its state; others have no effect.
  void ListOrphan(Connection& connection);
  // Drops orphans beyond the limits. No handler may hold a connection meanwhile.
  void DropExcessOrphans();

  // Sends a message of the connection once.
  void Send(const Connection& connection, uint64_t transaction_id, const wire::CmBody& body,
            uint32_t modifier, Step& step);
  // Sends a message, and again until Answered or the end of the schedule.
  void SendUntilAnswered(Connection& connection, uint64_t transaction_id, const wire::CmBody& body,
                         uint32_t modifier, Duration slow, int tries, Step& step);
  // Sends a message that has no answer, repeated while it may matter.
  void SendRepeatedly(Connection& connection, const wire::CmBody& body, Duration span, Step& step);
  // Sends the waiting message again now and keeps its schedule.
  void Resend(const Connection& connection, Step& step);
  void Answered(Connection& connection);
  void SetDeadline(Connection& connection, TimePoint deadline);
  void SetDeadline(Id& id, TimePoint deadline);

  // Answers a message without a connection. Returns false if the rate limit forbids it.
  bool Reply(const Inbound& inbound, const wire::CmBody& body, Step& step);

  void Emit(const Id& id, EventType type, int status, Step& step);
  void Emit(const Id& id, EventType type, int status, const ConnectParams& param, Step& step);
  // Emits kConnectRequest for an id that a request created.
  void EmitRequest(const Id& id, const ConnectParams& param, Step& step);

  Duration TimewaitOf(const Connection& connection) const;
  void EnterTimewait(Connection& connection, Step& step);
  // Ends the connection: notifies the program once and starts the timewait.
  void FinishDisconnect(Connection& connection, int status, Step& step);
  // Sends a DREQ and waits for the DREP.
  void StartDisconnect(Connection& connection, Step& step);

  // Asks the peer for time with an MRA.
  void AskForTime(Connection& connection, wire::CmAnswered answered, Step& step);

  // Returns a REJ of this connection. `answered`: the message that it answers.
  wire::CmRej MakeReject(const Connection& connection, wire::CmAnswered answered,
                         wire::RejectReason reason) const;
  void SendReject(Connection& connection, wire::CmAnswered answered, wire::RejectReason reason,
                  Step& step);

  // Returns the interval after which Linux repeats a request to this peer.
  Duration SlowInterval() const;

  // CmEngine::HandOver (hand_over/core_state.cc).
  void HandOver(hand_over::StateStream& state, CmActions& actions);

 private:
  void Resume(hand_over::StateStream& state);
  void HandOverWithdrawn(hand_over::StateStream& state);
  // Removes the connection from its id.
  void Separate(Connection& connection);
  // Returns true if the rate limits allow an answer to a message without a connection.
  bool MayAnswer(const wire::Gid& source, TimePoint now);
  Holdings& HoldingsOf(SessionId owner);
  void ForgetIfNothing(SessionId owner);
};

IdInfo InfoOf(const Id& id);

inline RequestWindow::Line LineOf(const Connection& connection) {
  return {connection.owner, connection.path.destination, connection.service_id};
}

}  // namespace rocegw::cm
