// SPDX-License-Identifier: Apache-2.0
// The attach sockets: they take connections, find out who they are, and move messages between each
// and its session. A client that asks faster than it may is read more slowly; one that breaks the
// rules of the connection loses its session. Nothing here blocks. Owner: the session server,
// control thread.
#pragma once

#include <sys/epoll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/session/attach/attach_gate.h"
#include "gateway/session/attach/message_socket.h"
#include "gateway/session/client_session.h"
#include "gateway/session/control_loop.h"
#include "gateway/session/services.h"

namespace rocegw::session {

struct SocketPlace {
  std::string path;
  mode_t mode = 0660;
  uid_t uid = static_cast<uid_t>(-1);  // -1: as it comes
  gid_t gid = static_cast<gid_t>(-1);
};

class AttachServer {
 public:
  explicit AttachServer(Services& services);
  ~AttachServer();
  AttachServer(const AttachServer&) = delete;
  AttachServer& operator=(const AttachServer&) = delete;

  // Who comes through it belongs to the pool of that name, which is there until StopListening.
  // EADDRINUSE when another daemon listens there; a socket file that nobody listens on is replaced.
  Status Listen(const SocketPlace& place, const std::string& pool);
  void StopListening(const std::string& path);
  void StopListening();

  // A connected SEQPACKET socket becomes a session of the pool, now or when the agent has vouched
  // for it, or is refused. path: of the attach socket; empty: it did not come by one.
  void Attach(UniqueFd socket, tenant::Pool& pool, const std::string& path = "");
  AttachGate& gate() { return gate_; }

  void End(SessionId id, const std::string& reason);
  void EndAll(const std::string& reason);
  // Whether a program should come by this attach socket soon; an event says when none has.
  void Expect(const std::string& path, bool program);
  // Those that came by this attach socket, and who waits there; yields how many are still ending.
  uint32_t Clear(const std::string& path, const std::string& reason);
  // Frees sessions that have ended; after each round of the loop.
  void Reap();

  ClientSession* Find(SessionId id) const;
  size_t session_count() const { return connections_.size(); }
  // f(session)
  template <typename F>
  void ForEach(F&& f) const {
    for (const auto& [id, connection] : connections_) f(*connection->session);
  }
  // Sessions that have ended but for what their programs block.
  size_t blocked_count() const { return blocked_.size(); }
  // Rows of sessions that have ended but for what their programs block; f(row).
  template <typename F>
  void ForEachBlocked(F&& f) const {
    for (const Blocked& blocked : blocked_) {
      SessionRow row = blocked.row;
      row.blocked_calls = blocked.CallsOut();
      f(row);
    }
  }

 private:
  struct Connection {
    Connection(UniqueFd fd, std::string by)
        : lane(ClientLane::Make()), socket(std::move(fd), lane), path(std::move(by)) {}
    const std::shared_ptr<ClientLane> lane;
    MessageSocket socket;
    const std::string path;  // of the attach socket; empty: it did not come by one
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
    std::vector<tenant::Charge> charges;  // the session itself, its descriptors
  };

  struct Listener {
    UniqueFd socket;
    std::string path;
    std::string pool;
    ControlLoop::WatchId watch = 0;
    ControlLoop::TimerId timer = 0;
    ControlLoop::TimerId expected_timer = 0;  // runs while a program is expected
  };

  void AcceptSome(Listener& listener);
  void Pause(Listener& listener);
  // The lane of connections of the pool that have not become sessions.
  const std::shared_ptr<ClientLane>& StrangersOf(const tenant::Pool& pool);
  void GiveWhenIdle();
  void Close(const std::string& path, Listener& listener);
  void Begin(ClientFd socket, tenant::Pool& pool, const std::string& path, Peer peer);
  // reason: for people, shown by the program; empty: the errno says it all.
  static void Refuse(ClientFd socket, int error, const std::string& reason);
  void OnSocket(Connection& connection, uint32_t events);
  void ReadRequests(Connection& connection);
  bool TakeToken(Connection& connection);
  void UpdateInterest(Connection& connection);
  // Tries the backlog again after a while: no event reports that descriptors can be sent again. A
  // connection of no more use is dropped then, outside the session's own calls.
  void RetryLater(Connection& connection);
  void TellDescriptorsInFlight(const Connection& connection);
  // The session ends; the client sees its connection closed.
  void Drop(Connection& connection, const std::string& reason);
  void LetGo(Connection& connection);
  void StopWatching(Connection& connection);
  void Close(Connection& connection);

  Services& services_;
  AttachGate gate_;
  std::map<std::string, std::unique_ptr<Listener>> listeners_;  // by path
  uint32_t next_id_ = 1;
  std::unordered_map<uint32_t, std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> ended_;
  std::unordered_map<uint64_t, std::shared_ptr<ClientLane>> strangers_;  // by pool
  // Sessions that have ended but for calls that their programs block: they count in their pools.
  struct Blocked {
    tenant::Pool* pool;
    std::shared_ptr<ClientLane> lane;
    std::shared_ptr<CopierRemains> copier;  // nullptr: there was none
    std::vector<tenant::Charge> charges;
    SessionRow row;

    uint32_t CallsOut() const {
      return static_cast<uint32_t>(lane->held()) + (copier != nullptr && !copier->ended ? 1 : 0);
    }
  };
  std::vector<Blocked> blocked_;
  ControlLoop::TimerId blocked_timer_ = 0;
};

}  // namespace rocegw::session
