// SPDX-License-Identifier: Apache-2.0
// Attach sockets: accept connections, identify their processes, and move messages between a
// connection and its session. A client that sends too fast is read more slowly; one that breaks the
// rules of the connection loses its session. Nothing blocks. Owner: the session server, control
// thread.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/base/inherited_fds.h"
#include "gateway/base/status.h"
#include "gateway/base/timing/token_bucket.h"
#include "gateway/base/unique_fd.h"
#include "gateway/loop/control_loop.h"
#include "gateway/session/attach/active_rings.h"
#include "gateway/session/attach/attach_gate.h"
#include "gateway/session/attach/program_connection.h"
#include "gateway/session/attach/program_messages.h"
#include "gateway/session/client_session.h"
#include "gateway/session/services.h"
#include "gateway/session/session_uses.h"

namespace rocegw::session {

struct SocketPlace {
  std::string path;
  mode_t mode = 0660;
  uid_t uid = static_cast<uid_t>(-1);  // -1: unchanged
  gid_t gid = static_cast<gid_t>(-1);
};

class AttachServer {
 public:
  explicit AttachServer(const SessionUses& uses);
  ~AttachServer();
  AttachServer(const AttachServer&) = delete;
  AttachServer& operator=(const AttachServer&) = delete;

  // Listens on a socket for programs of the named pool, which must exist until StopListening.
  // EADDRINUSE if another daemon listens there; a socket file without a listener is replaced.
  Status Listen(const SocketPlace& place, const std::string& pool);
  void StopListening(const std::string& path);
  void StopListening();
  // Sets where Listen takes sockets of another process from; nullptr: nowhere. The owner keeps it.
  void Inherit(InheritedFds* inherited) { inherited_ = inherited; }
  // Adds the listening sockets to what another process may inherit.
  void Offer(OfferedFds& fds) const;
  // Accepts no connections, which wait in the sockets, or accepts them again.
  void SetAccepting(bool accepting);

  // Reads no requests of programs that have greeted, or reads them again.
  void SetReading(bool reading);
  // Ignores all connections, also their ends, or looks at them again.
  void SetWatching(bool watching);
  // Returns why the sessions cannot be handed over now; empty: nothing is in progress. Calls that
  // programs block which have ended do not count: the memory that they use is not handed over.
  std::string Unsettled() const;
  // Begins the wait for the requests that are in progress, before a take-over stops all programs:
  // reads no further request of their sessions (hand_over/settling.cc).
  void BeginSettling();
  // Returns true while such a request is in progress.
  bool settling() const;
  enum class Unsettling : uint8_t { kAtBegin, kAll };
  // Ends the sessions that could prevent each take-over: those that have not greeted, do not read
  // their answers, have attached since BeginSettling, or prevented an earlier one. Returns which
  // other one prevents this one; empty: none does. kAtBegin: looks at those of BeginSettling only.
  std::string EndUnsettled(Unsettling which);
  void EndSettling();
  // Returns why a session can never be handed over to a gateway that reads these versions; empty:
  // all can.
  std::string NotHandedOver(const hand_over::StateVersions& reader = {}) const;
  void OfferSessions(OfferedFds& fds) const;
  // Writes all sessions, or reads them into a server that has none and does not watch. The reader
  // has sent their objects to the workers then; see linked.
  void HandOver(hand_over::StateStream& state, uint16_t version);
  // Hand-over of most sessions while the gateway still serves, so that HandOver has few. A writer
  // looks at all sessions, and after a while writes those that have not changed. HandOver then
  // writes only that they are as they were, and fails if one is not.
  void LookAtSessions(const hand_over::StateVersions& reader);
  void HandOverUnchanged(hand_over::StateStream& state, uint16_t version);
  // State of all sessions' objects that workers change, behind HandOver.
  void HandOverShared(hand_over::StateStream& state);
  // Returns false if HandOver failed because a session ended or changed.
  bool are_unchanged() const { return unchanged_; }
  // Error of a worker that refused an object of a session that was read; 0: none.
  int link_error() const;

  // Makes a connected SEQPACKET socket a session of the pool, now or after the agent's verdict, or
  // refuses it. `path`: its attach socket; empty: none.
  void Attach(UniqueFd socket, tenant::Pool& pool, const std::string& path = "");
  AttachGate& gate() { return gate_; }

  void End(SessionId id, const std::string& reason);
  void EndAll(const std::string& reason);
  // Sets if a program should attach at this socket soon; an event reports if none does.
  void Expect(const std::string& path, bool program);
  // Ends the sessions of this attach socket and refuses its waiting attaches. Returns how many are
  // still ending.
  uint32_t Clear(const std::string& path, const std::string& reason);
  // Wakes threads of programs whose requests were answered, and destroys ended sessions. Call after
  // each round of the loop.
  void AfterRound();

  ClientSession* Find(SessionId id) const;
  size_t session_count() const { return connections_.size(); }
  // Calls f(session) for each session.
  template <typename F>
  void ForEach(F&& f) const {
    for (const auto& [id, connection] : connections_) f(*connection->session);
  }
  // Returns the number of ended sessions of which only blocking calls remain.
  size_t blocked_count() const { return blocked_.size(); }
  // Calls f(row) for each ended session of which only blocking calls remain.
  template <typename F>
  void ForEachBlocked(F&& f) const {
    for (const Blocked& blocked : blocked_) {
      SessionRow row = blocked.row;
      row.blocked_calls = blocked.CallsOut();
      f(row);
    }
  }

 private:
  struct Connection final : RingRequests {
    Connection(AttachServer& its_server, ProgramConnection accepted, std::string by)
        : server(its_server), messages(std::move(accepted), server.wakes_), path(std::move(by)) {
      messages.socket().Use(call_queue);
      messages.Watch(server.services_.loop, [this] { server.OnRingWake(*this); });
    }
    bool HasRequest() const override { return messages.HasRequest(); }
    bool MayRead() const override;
    void Read() override { server.OnRing(*this); }
    void SetAwake(bool awake) override { messages.SetAwake(awake); }

    AttachServer& server;
    const std::shared_ptr<ClientCallQueue> call_queue = ClientCallQueue::Make();
    ProgramMessages messages;
    const std::string path;  // attach socket; empty: none
    std::unique_ptr<ClientSession> session;
    ControlLoop::WatchId watch = 0;
    uint32_t watched = EPOLLIN | EPOLLRDHUP;
    ControlLoop::WatchId process_watch = 0;
    ControlLoop::TimerId hello_timer = 0;
    ControlLoop::TimerId rate_timer = 0;
    ControlLoop::TimerId retry_timer = 0;  // runs while a descriptor cannot be sent
    double tokens = 0;                     // requests that may be read now
    TimePoint tokens_at;
    bool closed = false;
    bool settles = false;                 // no further request is read (BeginSettling)
    std::vector<tenant::Charge> charges;  // charges of the session itself and its descriptors
  };

  struct Listener {
    explicit Listener(const SessionBounds& bounds)
        : attaches(bounds.attaches_per_second, bounds.attach_burst) {}
    UniqueFd socket;
    std::string path;
    std::string pool;
    ControlLoop::WatchId watch = 0;
    ControlLoop::TimerId timer = 0;
    ControlLoop::TimerId expected_timer = 0;  // runs while a program is expected
    TokenBucket attaches;
  };

  // Adds a session of the connection. It is not watched yet.
  Connection& Add(uint32_t id, ProgramConnection socket, tenant::Pool& pool,
                  const std::string& path, Peer peer, std::shared_ptr<tenant::SlotShare> slot,
                  std::vector<tenant::Charge> charges);
  void Watch(Connection& connection);
  StatusOr<UniqueFd> Open(const SocketPlace& place);
  uint32_t ListenerEvents() const { return accepting_ ? uint32_t{EPOLLIN} : 0; }
  // Accepts one connection, because requests of attached programs wait meanwhile.
  void AcceptOne(Listener& listener);
  void Pause(Listener& listener, Duration pause);
  // Returns the call queue of the pool's connections that are not sessions yet.
  const std::shared_ptr<ClientCallQueue>& StrangersOf(const tenant::Pool& pool);
  void Reap();
  void GiveWhenIdle();
  void Close(const std::string& path, Listener& listener);
  // Closes the connections that the socket has not accepted, and the socket.
  void CloseSocket(Listener& listener);
  // Does so for sockets that wait for it, and again later where descriptors are short.
  void CloseUnaccepted();
  void Begin(ProgramConnection socket, tenant::Pool& pool, const std::string& path, Peer peer,
             const tenant::SlotLimits& limits);
  // `reason`: for the program's user; empty: the errno suffices.
  void Refuse(ProgramConnection socket, int error, const std::string& reason) const;
  void OnSocket(Connection& connection, uint32_t events);
  void OnRing(Connection& connection);
  void OnRingWake(Connection& connection);
  // Returns true if nothing holds up the program's next request but its rate.
  bool MayReadNext(const Connection& connection) const;
  // `socket`: its socket may have requests, too.
  void ReadRequests(Connection& connection, bool socket);
  void AfterReading(Connection& connection, bool too_early);
  bool TakeToken(Connection& connection);
  void UpdateInterest(Connection& connection);
  // Lets this gateway execute all requests in rings, and the next one find the others in sockets.
  void CloseRings();
  // Tries to send the backlog again after a while: no event reports when descriptors can be sent. A
  // useless connection is then dropped outside of the session's own calls.
  void RetryLater(Connection& connection);
  void TellDescriptorsInFlight(const Connection& connection);
  // Ends the session; the client sees the close of its connection.
  void Drop(Connection& connection, const std::string& reason);
  void LetGo(Connection& connection);
  void StopWatching(Connection& connection);
  void Close(Connection& connection);
  // hand_over/settling.cc: returns why the session cannot be handed over now; nullptr: it can.
  const char* Hindrance(const Connection& connection) const;
  // Returns true if requests of the connection may be read now.
  bool MayRead(const Connection& connection) const {
    return !connection.session->greeted() || (reading_ && !connection.settles);
  }
  // hand_over/sessions_state.cc:
  void HandOverSession(hand_over::StateStream& state, uint32_t id, uint16_t version);
  std::vector<uint8_t> StateOf(uint32_t id, const hand_over::StateVersions& reader);

  const SessionUses uses_;
  Services& services_;
  AttachGate gate_;
  ActiveRings active_rings_;
  PendingWakes wakes_;
  InheritedFds* inherited_ = nullptr;
  int waits_for_earlier_ = 50;  // left, of all calls of Listen: the control thread waits a second
  bool accepting_ = true;
  bool reading_ = true;
  bool watching_ = true;
  std::map<std::string, std::unique_ptr<Listener>> listeners_;  // by path
  uint32_t next_id_ = 1;
  std::unordered_map<uint32_t, std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> ended_;
  std::unordered_map<uint64_t, std::shared_ptr<ClientCallQueue>> strangers_;  // by pool
  // Ended sessions of which only calls that their programs block remain. They count in their pools.
  struct Blocked {
    tenant::Pool* pool;
    std::shared_ptr<ClientCallQueue> call_queue;
    std::shared_ptr<CopierRemains> remains;
    std::vector<tenant::Charge> charges;
    SessionRow row;

    uint32_t CallsOut() const {
      return static_cast<uint32_t>(call_queue->held()) + (remains->Waits() ? 1 : 0);
    }
  };
  std::vector<Blocked> blocked_;
  // Attach sockets that are closed when their connections are.
  struct Unaccepted {
    UniqueFd socket;
    std::shared_ptr<ClientCallQueue> call_queue;
    std::shared_ptr<DescriptorReceiver> receiver;
  };
  std::vector<Unaccepted> unaccepted_;
  ControlLoop::TimerId unaccepted_timer_ = 0;
  // Sessions that are handed over ahead, by number. A writer's state: as it wrote it, or looked at
  // it before; a reader has none.
  struct Ahead {
    std::string pool;
    std::vector<uint8_t> state;
  };
  std::map<uint32_t, Ahead> ahead_;
  // Pools of which a session changed or ended after it was handed over ahead, and when: their
  // sessions are handed over with the rest for a while, so that a pool can spoil one try only.
  std::map<std::string, TimePoint> restless_pools_;
  bool unchanged_ = true;
  uint32_t first_after_begin_ = 0;  // number of the first session that attached after BeginSettling
  std::set<uint32_t> hindered_;     // sessions that prevented a take-over
  ControlLoop::TimerId blocked_timer_ = 0;
};

}  // namespace rocegw::session
