// SPDX-License-Identifier: Apache-2.0
// Many agents in one process: each is the production agent with an identity, a certificate and a
// connection of its own, over a gateway that takes everything (fake_gateway.h). All live on one
// loop's thread. What cannot be done ends the program. One thread, but for what the gateways note.
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
    std::string directory;  // exists; of the identities
    size_t agents = 0;
    bool remember = false;  // FakeGateway
  };
  explicit AgentFleet(Options options);
  ~AgentFleet();
  AgentFleet(const AgentFleet&) = delete;
  AgentFleet& operator=(const AgentFleet&) = delete;

  // "gateways/g7"
  static std::string NameOf(size_t at) { return "gateways/g" + std::to_string(at); }

  // Each with a join token that the administrator makes.
  void Join(const std::shared_ptr<grpc::Channel>& admin);
  void Start();

  size_t size() const { return nodes_.size(); }
  // From Start on.
  FakeGateway& gateway(size_t at) { return *nodes_[at].gateway; }

 private:
  struct Node {
    std::unique_ptr<agent::NodeIdentity> identity;
    std::unique_ptr<FakeGateway> gateway;
    std::unique_ptr<agent::Agent> agent;  // the loop's
  };
  void JoinOne(const std::shared_ptr<grpc::Channel>& admin, size_t at);

  const Options options_;
  std::vector<Node> nodes_;
  session::ControlLoop loop_;
  std::thread thread_;
};

}  // namespace rocegw::testing
