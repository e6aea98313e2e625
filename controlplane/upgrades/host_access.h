// SPDX-License-Identifier: Apache-2.0
// Hosts of gateways as the driver of upgrades sees them, and the queue of their answers. Any
// thread; outlives the driver.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "controlplane/api/driving/answer_queue.h"
#include "controlplane/upgrades/take_over_records.h"
#include "controlplane/upgrades/upgrade_rules.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::upgrades {

// Answer of an agent, or the gRPC code that says why there is none.
struct HostAnswer {
  int code = 0;
  std::string message;
  fleet::v1::TunnelAnswer answer;
};

class HostAccess {
 public:
  virtual ~HostAccess() = default;
  // Returns what is known of the host of "gateways/G".
  virtual HostState StateOf(const std::string& gateway) = 0;
  // Returns what the gateways have reported about their take-overs.
  virtual TakeOverReports TakeOvers() = 0;
  // Calls `done` once, on any thread, at the latest soon after `limit`.
  virtual void Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
                   std::chrono::seconds limit, std::function<void(HostAnswer)> done) = 0;
};

struct Arrived {
  std::string gateway;
  uint64_t number = 0;  // number of the question
  HostAnswer answer;
};

using Inbox = api::AnswerQueue<Arrived>;

}  // namespace rocegw::upgrades
