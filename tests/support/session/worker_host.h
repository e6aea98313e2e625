// SPDX-License-Identifier: Apache-2.0
// A session server with real workers, on a port that leads nowhere or to another such host: what a
// gateway does for its programs, without a network. Driven by hand in one thread, or by threads of
// its own.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/port/pair_port.h"
#include "gateway/session/session_server.h"
#include "gateway/worker/worker.h"
#include "gateway/worker/worker_thread.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {

class WorkerHost {
 public:
  // Two hosts at one link are neighbours: side 0 has the address 192.0.2.1, side 1 192.0.2.2.
  WorkerHost(size_t workers, session::Options options, bool threads,
             std::shared_ptr<port::PairLink> link = nullptr, int side = 0,
             session::SourceLookup lookup = session::SourceByKernel);
  ~WorkerHost();
  WorkerHost(const WorkerHost&) = delete;
  WorkerHost& operator=(const WorkerHost&) = delete;

  // Adds the pool, or changes it; its tenant comes with it. By hand, or before StartControl.
  void SetPool(const tenant::PoolSettings& settings);
  // The control loop runs in a thread of its own from now on.
  void StartControl();
  // Runs on the control thread, and waits for it.
  void OnControl(const std::function<void()>& task);

  // A link for hosts of so many workers.
  static std::shared_ptr<port::PairLink> LinkFor(size_t workers);
  const std::shared_ptr<port::PairLink>& link() const { return ports_; }
  static wire::Gid GidOf(int side) { return wire::Gid::FromV4(0xC0000201u + side); }
  // By hand: whenever this host has a turn, its neighbour has one too.
  void TurnsWith(WorkerHost* neighbour) { neighbour_ = neighbour; }

  // One turn of everybody, by hand.
  void Turn();
  // Until nothing happens any more.
  void Settle();

  std::unique_ptr<TestClient> Join(const std::string& pool);
  // A client that is greeted, with a context, a protection domain and a completion queue.
  struct Program {
    std::unique_ptr<TestClient> client;
    uint32_t pd = 0;
    uint32_t cq = 0;
  };
  Program Begin(const std::string& pool);
  // RESET to RTS in three steps; as it is, towards a peer that does not exist. The first errno; 0:
  // none.
  struct Peer {
    uint32_t qpn = 0x1234;
    wire::Gid gid = GidOf(1);
  };
  static int Connect(TestClient& client, uint32_t qp, const Peer& peer,
                     verbs::QpType type = verbs::QpType::kRc);
  static int Connect(TestClient& client, uint32_t qp) { return Connect(client, qp, Peer()); }
  static constexpr uint32_t kQkey = 0x11111111;  // of datagram queue pairs

  uint64_t Count(metrics::Counter metrics::WorkerCounters::*counter) const;

  session::ControlLoop loop;
  std::vector<std::string> log;  // what the session server says; of the control thread
  std::unique_ptr<session::SessionServer> server;

 private:
  struct One {
    explicit One(size_t workers) : inbox(workers) {}
    worker::WorkerLink link;
    metrics::WorkerCounters counters;
    std::unique_ptr<worker::Worker> worker;
    std::unique_ptr<worker::WorkerThread> thread;
    worker::WorkerInbox inbox;
    UniqueFd wake;
    std::map<int, SessionId> watched;  // by hand: descriptors of sessions that may sleep
  };
  void OwnTurn();

  const bool threads_;
  UniqueFd control_wake_;
  std::shared_ptr<port::PairLink> ports_;
  WorkerHost* neighbour_ = nullptr;
  std::vector<std::unique_ptr<One>> workers_;
  std::thread control_;
};

}  // namespace rocegw::testing
