// SPDX-License-Identifier: Apache-2.0
// Examinations of the host on a separate thread, since they need many system calls. One runs at a
// time; requests during an examination get its result. Any thread.
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
  // Answers all requests first.
  ~Diagnoses();
  Diagnoses(const Diagnoses&) = delete;
  Diagnoses& operator=(const Diagnoses&) = delete;

  // `done` runs on the thread.
  void Ask(doctor::GatewayFacts gateway, Done done);

 private:
  void Run(doctor::GatewayFacts gateway);

  std::mutex mutex_;
  std::vector<Done> waiting_;  // empty: no examination runs
  std::thread thread_;         // latest thread
};

}  // namespace rocegw::daemon
