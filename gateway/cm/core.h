// SPDX-License-Identifier: Apache-2.0
// The inside of the connection manager: its tables and the few operations that all handlers are
// made of. Not part of the interface (cm_engine.h). Handlers are functions over Core; state_table.h
// says which one runs when. Control thread.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gateway/base/containers/kept_nodes.h"
#include "gateway/base/containers/key_map.h"
#include "gateway/base/ids.h"
#include "gateway/base/secret_sequence.h"
#include "gateway/base/time.h"
#include "gateway/base/token_bucket.h"
#include "gateway/cm/cm_action.h"
#include "gateway/cm/cm_config.h"
#include "gateway/cm/cm_counters.h"
#include "gateway/cm/cm_id.h"
#include "gateway/cm/cm_types.h"
#include "gateway/cm/connection/connection.h"
#include "gateway/cm/connection/connection_table.h"
#include "gateway/cm/connection/early_requests.h"
#include "gateway/cm/connection/request_window.h"
#include "gateway/cm/deadline_set.h"
#include "gateway/cm/path/discovery.h"
#include "gateway/cm/path/port_table.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::cm {

// One call into the engine.
struct Step {
  TimePoint now;
  CmActions& actions;
};

// One received message and where it came from.
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
    size_t connections = 0;  // orphans too
  };
  KeyMap<Holdings> owners;  // by SessionId, those that have something
  ConnectionTable connections;
  PortTable ports;
  DeadlineSet deadlines;
  EarlyRequests early;
  Discovery discovery;
  RequestWindow window;
  // Active connections whose REQ waits for what discovery finds out: peer, our communication ID.
  std::set<std::pair<wire::Gid, uint32_t>> undiscovered;
  TokenBucket strangers;  // answers to messages of no connection
  CmCounters counters;
  SecretKey guid_key{};  // of CaGuidFor
  uint64_t last_engine_handle = kEngineHandleBit;
  size_t wanted = 0;  // connections that there is to be room for

  // As CmEngine's.
  void Keep(size_t connections_wanted);
  bool Refill();

  // The CA GUID that this instance names towards a peer, never 0. Peers match REQs to old
  // connections by it, and a REQ may end a connection as stale. So each peer gets a GUID of its own
  // that no other peer can compute, and a restarted gateway names others.
  uint64_t CaGuidFor(const wire::Gid& peer) const;

  const LocalAddress* FindAddress(const wire::Gid& gid) const;
  // Own addresses are nobody's to ask.
  PeerKind Ask(const wire::Gid& source, const wire::Gid& peer, Step& step);
  NegotiationView ViewOf(const Connection& connection) const;
  Id* FindId(CmHandle handle);
  const Id* FindId(CmHandle handle) const;
  Connection* ConnectionOf(const Id& id);
  // nullptr: orphan.
  Id* IdOf(const Connection& connection) { return FindId(connection.id); }

  // nullptr: a limit is reached.
  Id* NewId(CmHandle handle, SessionId owner);
  // Gives up its port and its place in the tables; the connection must have been seen to.
  void EraseId(Id& id);

  // nullptr: a limit is reached. Linked with the id.
  Connection* NewConnection(Id& id, bool active, Step& step);
  // Gone at once, without timewait. The reference is dead afterwards.
  void DropConnection(Connection& connection);
  // The request no longer waits for the program to look at it.
  void LeaveBacklog(Connection& connection);
  // Its REQ counts no longer among those that its listener has before it.
  void LeaveWindow(Connection& connection, RequestWindow::End end, TimePoint now);
  // Leaves the connection to itself; its id may die.
  void Orphan(Connection& connection);

  // Sends a message of the connection once.
  void Send(const Connection& connection, uint64_t transaction_id, const wire::CmBody& body,
            uint32_t modifier, Step& step);
  // The same, and again until Answered or the schedule ends.
  void SendUntilAnswered(Connection& connection, uint64_t transaction_id, const wire::CmBody& body,
                         uint32_t modifier, Duration slow, int tries, Step& step);
  // Sends a message that has no answer, and repeats it while it may matter.
  void SendRepeatedly(Connection& connection, const wire::CmBody& body, Duration span, Step& step);
  // Sends the waiting message again now, keeping its schedule.
  void Resend(const Connection& connection, Step& step);
  void Answered(Connection& connection);
  void SetDeadline(Connection& connection, TimePoint deadline);
  void SetDeadline(Id& id, TimePoint deadline);

  // Answers a message that belongs to no connection. False when that was done too often.
  bool Reply(const Inbound& inbound, const wire::CmBody& body, Step& step);

  void Emit(const Id& id, EventType type, int status, Step& step);
  void Emit(const Id& id, EventType type, int status, const ConnectParams& param, Step& step);
  // Of an id that came to a listener.
  void EmitRequest(const Id& id, const ConnectParams& param, Step& step);

  Duration TimewaitOf(const Connection& connection) const;
  void EnterTimewait(Connection& connection, Step& step);
  // The connection is over: tells the program once and sits out the timewait.
  void FinishDisconnect(Connection& connection, int status, Step& step);
  // Sends a DREQ.
  void StartDisconnect(Connection& connection, Step& step);

  // Asks the peer for time with an MRA.
  void AskForTime(Connection& connection, wire::CmAnswered answered, Step& step);

  // A REJ of this connection. `answered` says to what.
  wire::CmRej MakeReject(const Connection& connection, wire::CmAnswered answered,
                         wire::RejectReason reason) const;
  void SendReject(Connection& connection, wire::CmAnswered answered, wire::RejectReason reason,
                  Step& step);

  // Interval after which Linux would repeat a request to this peer.
  Duration SlowInterval() const;

 private:
  Holdings& HoldingsOf(SessionId owner);
  void ForgetIfNothing(SessionId owner);
};

IdInfo InfoOf(const Id& id);

inline RequestWindow::Line LineOf(const Connection& connection) {
  return {connection.owner, connection.path.destination, connection.service_id};
}

}  // namespace rocegw::cm
