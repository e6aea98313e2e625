// SPDX-License-Identifier: Apache-2.0
// Many agents in one process. Each is the production agent with its own identity, certificate and
// connection, and with a FakeGateway. All agents run on the thread of one loop. A failed step ends
// the program. One thread calls the methods; any thread may read the gateways' records.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/supervise/agent.h"
#include "tests/support/fleet/fake_gateway.h"

namespace grpc {
class Channel;
}

namespace rocegw::testing {

class AgentFleet {
 public:
  struct Options {
    std::string directory;  // existing folder for the identities
    size_t agents = 0;
    bool remember = false;  // argument of FakeGateway
  };
  explicit AgentFleet(Options options);
  ~AgentFleet();
  AgentFleet(const AgentFleet&) = delete;
  AgentFleet& operator=(const AgentFleet&) = delete;

  // "gateways/g7"
  static std::string NameOf(size_t at) { return "gateways/g" + std::to_string(at); }

  // Joins all agents, each with a join token that the administrator makes.
  void Join(const std::shared_ptr<grpc::Channel>& admin);
  void Start();

  size_t size() const { return nodes_.size(); }
  // Valid from Start on.
  FakeGateway& gateway(size_t at) { return *nodes_[at].gateway; }

 private:
  struct Node {
    std::unique_ptr<agent::NodeIdentity> identity;
    std::unique_ptr<FakeGateway> gateway;
    std::unique_ptr<agent::Agent> agent;  // used on the loop's thread
  };
  void JoinOne(const std::shared_ptr<grpc::Channel>& admin, size_t at);

  const Options options_;
  std::vector<Node> nodes_;
  ControlLoop loop_;
  std::thread thread_;
};

}  // namespace rocegw::testing
