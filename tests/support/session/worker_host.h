// SPDX-License-Identifier: Apache-2.0
// Session server with production workers, on a port without peer or joined to another such host: a
// gateway without a network. The test drives it in one thread, or it has its own threads.
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
  // Two hosts of one link are neighbours: side 0 has address 192.0.2.1, side 1 has 192.0.2.2.
  WorkerHost(size_t workers, session::Options options, bool threads,
             std::shared_ptr<port::PairLink> link = nullptr, int side = 0,
             session::SourceLookup lookup = session::SourceByKernel);
  ~WorkerHost();
  WorkerHost(const WorkerHost&) = delete;
  WorkerHost& operator=(const WorkerHost&) = delete;

  // Adds or changes the pool and its tenant. Before StartControl, if that is used.
  void SetPool(const tenant::PoolSettings& settings);
  // Starts a thread for the control loop.
  void StartControl();
  // Runs a function on the control thread and waits for its end.
  void OnControl(const std::function<void()>& task);

  // Returns a link for hosts with so many workers.
  static std::shared_ptr<port::PairLink> LinkFor(size_t workers);
  const std::shared_ptr<port::PairLink>& link() const { return ports_; }
  static wire::Gid GidOf(int side) { return wire::Gid::FromV4(0xC0000201u + side); }
  // Runs the neighbour too whenever the test runs this host.
  void TurnsWith(WorkerHost* neighbour) { neighbour_ = neighbour; }

  // Runs control loop and workers once.
  void Turn();
  // Runs control loop and workers until no work is left.
  void Settle();

  std::unique_ptr<TestClient> Join(const std::string& pool);
  // Greeted client with a context, a protection domain and a completion queue.
  struct Program {
    std::unique_ptr<TestClient> client;
    uint32_t pd = 0;
    uint32_t cq = 0;
  };
  Program Begin(const std::string& pool);
  // Moves a queue pair from RESET to RTS in three steps; the default peer does not exist. Returns
  // the first errno value, or 0.
  struct Peer {
    uint32_t qpn = 0x1234;
    wire::Gid gid = GidOf(1);
  };
  static int Connect(TestClient& client, uint32_t qp, const Peer& peer,
                     verbs::QpType type = verbs::QpType::kRc);
  static int Connect(TestClient& client, uint32_t qp) { return Connect(client, qp, Peer()); }
  static constexpr uint32_t kQkey = 0x11111111;  // Q_Key of datagram queue pairs

  uint64_t Count(metrics::Counter metrics::WorkerCounters::*counter) const;

  ControlLoop loop;
  std::vector<std::string> log;  // lines of the session server; control thread
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
