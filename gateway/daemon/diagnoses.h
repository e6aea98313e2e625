// SPDX-License-Identifier: Apache-2.0
// Has the host examined on a thread of its own, since reading it takes system calls without end.
// One examination at a time: who asks while one is under way gets its result. Any thread.
#pragma once

#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "gateway/doctor/facts.h"
#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::daemon {

class Diagnoses {
 public:
  using Done = std::function<void(const gateway::v1::DiagnoseResponse&)>;

  Diagnoses() = default;
  // Whoever asked has got an answer then.
  ~Diagnoses();
  Diagnoses(const Diagnoses&) = delete;
  Diagnoses& operator=(const Diagnoses&) = delete;

  // done: on the thread.
  void Ask(doctor::GatewayFacts gateway, Done done);

 private:
  void Run(doctor::GatewayFacts gateway);

  std::mutex mutex_;
  std::vector<Done> waiting_;  // none: nothing is under way
  std::thread thread_;         // the last one
};

}  // namespace rocegw::daemon
