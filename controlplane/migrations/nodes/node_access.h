// SPDX-License-Identifier: Apache-2.0
// Hosts of a storage cluster as the driver of migrations sees them. A node of a plan is the host of
// the gateway of that name. Any thread; outlives the driver.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::migrations {

// Answer to a call, or the gRPC code that says why there is none.
struct NodeAnswer {
  int code = 0;
  std::string message;
  fleet::v1::MigrationReport report;
  // Results of a path test: median round trip, its 99th percentile, and the rate at full speed.
  uint64_t median_ns = 0;
  uint64_t p99_ns = 0;
  uint64_t bytes_per_second = 0;
};

class NodeAccess {
 public:
  virtual ~NodeAccess() = default;
  // Returns true if the node's agent is connected to a controller.
  virtual bool IsReachable(const std::string& node) = 0;
  // Returns what the controller itself knows against a migration of the node now, or an empty text.
  virtual std::string Problem(const std::string& node) = 0;
  // Calls `done` once, on any thread, at the latest soon after `limit`.
  virtual void Call(const std::string& node, const fleet::v1::MigrationCall& call,
                    std::chrono::seconds limit, std::function<void(NodeAnswer)> done) = 0;
  // Tests the path between the gateways of two nodes: probes connect and compare whole packets both
  // ways. `done` as above; a path that does not work has a code.
  virtual void TestPath(const std::string& from, const std::string& to, std::chrono::seconds limit,
                        std::function<void(NodeAnswer)> done) = 0;
};

}  // namespace rocegw::migrations
