// SPDX-License-Identifier: Apache-2.0
// Hosts of a storage cluster as the driver of migrations sees them. A node of a plan is the host of
// the gateway of that name. Any thread; outlives the driver.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::migrations {

// Answer to a call, or the gRPC code that says why there is none.
struct NodeAnswer {
  int code = 0;
  std::string message;
  std::string remedy;  // for a path that does not work; may be empty
  fleet::v1::MigrationReport report;
  // Results of a path test: median round trip, its 99th percentile, and the rate at full speed.
  uint64_t median_ns = 0;
  uint64_t p99_ns = 0;
  uint64_t bytes_per_second = 0;
  std::optional<types::v1::PlainPath> plain;  // network beside RDMA
  // Result of ReadQuota; not set: no limit is known.
  std::optional<uint64_t> free_qps;
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
  // Reads how many more queue pairs programs of the node may make in the pool that the path tests
  // use. `done` as above.
  virtual void ReadQuota(const std::string& node, std::chrono::seconds limit,
                         std::function<void(NodeAnswer)> done) = 0;
};

}  // namespace rocegw::migrations
