// SPDX-License-Identifier: Apache-2.0
// Donor of memory: accepts sessions, leases memory regions to them, and ends the leases with the
// session. It takes no part in transfers. One thread runs it, in rounds of bounded work, so that no
// flood keeps it from what else is to be done; sessions that have messages share its time. A
// session whose gateway was restarted continues by another connection, as long as its leases last.
// Stop, Follow, counts and IsRunning are for any thread.
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/far/donor/fair_turns.h"
#include "gateway/far/donor/lease_ledger.h"
#include "gateway/far/link/connection.h"
#include "gateway/far/link/listener.h"

namespace rocegw::far {

struct DonorCounts {
  uint64_t donated_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t leases = 0;
  uint64_t sessions = 0;
  std::map<std::string, uint64_t> leased_by_tenant;
  uint64_t sessions_accepted = 0;
  uint64_t sessions_refused = 0;
  uint64_t sessions_expired = 0;    // silent for longer than a lease lasts
  uint64_t sessions_continued = 0;  // by another connection
  uint64_t leases_granted = 0;
  uint64_t leases_refused = 0;
  uint64_t connections_ended = 0;  // never established, in favour of later ones
  bool draining = false;
};

class Donor {
 public:
  explicit Donor(LeaseLedger::Limits limits);
  ~Donor();
  Donor(const Donor&) = delete;
  Donor& operator=(const Donor&) = delete;

  // Listens at the address. `host` empty: all addresses of RDMA devices.
  Status Listen(const std::string& host, const std::string& port) {
    return listener_.Open(host, port);
  }
  // Numeric address that it listens at, after Listen; empty: all.
  std::string address() const { return listener_.address(); }
  uint16_t port() const { return listener_.port(); }
  // Serves until Stop, or until the gateway or device that it listens at is gone (ENODEV).
  Status Run();
  // Whether Run has begun a round within the last half minute.
  bool IsRunning() const;
  void Stop();
  // Follows orders of the fleet. While it drains, its answers ask sessions to move their data.
  void Follow(LeaseLedger::Orders orders);
  DonorCounts counts() const;

 private:
  // A device that sessions came through.
  struct Device {
    ibv_comp_channel* channel = nullptr;
    ibv_cq* cq = nullptr;
  };
  class LeasedMemory;
  struct Received {
    Completable* buffer;
    Message message;
  };
  struct Session {
    uint64_t number = 0;
    uint64_t secret = 0;  // part of its proof
    std::string tenant;
    std::string host;
    bool brief = false;  // gives way to others while it is disconnected
    // A key of one session means nothing on the queue pair of another one. Connections of the
    // session that have ended share it.
    std::shared_ptr<ibv_pd> pd;
    std::unique_ptr<Connection> connection;
    ibv_context* context = nullptr;
    std::map<uint64_t, std::unique_ptr<LeasedMemory>> leases;
    // Messages that wait for their turn; each has a buffer, so that there are few.
    std::deque<Received> received;
  };

  // Connection that has ended: its messages are still to be flushed. If the session has ended too,
  // its leases are still to be freed.
  struct Ended {
    Session session;
    Clock::time_point since;
  };

  StatusOr<Device*> DeviceOf(ibv_context* context);
  bool OnEvents();
  void OnRequest(rdma_cm_id* id, const void* hello, size_t hello_bytes);
  void Refuse(rdma_cm_id* id, int error);
  Session* FindEarlier(const Hello& hello, const rdma_cm_id* id);
  void Continue(Session& session, std::unique_ptr<Connection> connection, rdma_cm_id* id);
  Status Accept(Session& session, const Welcome& welcome);
  bool OnCompletions(Device& device);
  void OnCompletion(const ibv_wc& completion);
  bool HandleMessages();
  void OnMessage(Session& session, const Message& message);
  void Grant(Session& session, const Message& asked);
  bool MakeWay(int error, const std::string& tenant, const std::string& host);
  void OnDisconnected(uint64_t session);
  void End(uint64_t session);
  void AddEnded(Ended ended);
  bool FreeEnded(bool all);
  void FreeLeases(Session& session, Clock::time_point end);

  mutable std::mutex mutex_;  // guards the ledger and counts
  LeaseLedger ledger_;
  DonorCounts counts_;
  UniqueFd stop_fd_;
  Listener listener_;
  std::map<ibv_context*, Device> devices_;
  std::map<uint64_t, Session> sessions_;
  FairTurns turns_;  // sessions with messages
  std::list<Ended> ended_;
  bool listener_gone_ = false;
  std::atomic<LeaseLedger::Seconds> last_round_{0};
  uint64_t last_session_ = 0;
};

}  // namespace rocegw::far
