// SPDX-License-Identifier: Apache-2.0
// A session server with real workers, on a port that leads nowhere: what a gateway does for its
// programs, without a network. Driven by hand in one thread, or by threads of its own.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/port/pair_port.h"
#include "gateway/session/session_server.h"
#include "gateway/worker/worker.h"
#include "gateway/worker/worker_thread.h"
#include "tests/support/session_host.h"

namespace rocegw::testing {

class WorkerHost {
 public:
  WorkerHost(size_t workers, session::Options options, bool threads);
  ~WorkerHost();
  WorkerHost(const WorkerHost&) = delete;
  WorkerHost& operator=(const WorkerHost&) = delete;

  // Adds the pool, or changes it; its tenant comes with it. By hand, or before StartControl.
  void SetPool(const tenant::PoolSettings& settings);
  // The control loop runs in a thread of its own from now on.
  void StartControl();
  // Runs on the control thread, and waits for it.
  void OnControl(const std::function<void()>& task);

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
  // RESET to RTS in three steps, towards a peer that does not exist. The first errno; 0: none.
  static int Connect(TestClient& client, uint32_t qp);

  session::ControlLoop loop;
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
  };

  const bool threads_;
  UniqueFd control_wake_;
  std::unique_ptr<port::PairLink> ports_;
  std::vector<std::unique_ptr<One>> workers_;
  std::thread control_;
};

}  // namespace rocegw::testing
