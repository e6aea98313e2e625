// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fleet/agent_fleet.h"

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <filesystem>
#include <utility>

#include "controlplane/identity/join_token.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "tests/support/fleet/controller_program.h"

namespace rocegw::testing {
namespace {

// Probing thousands of gateways is not the work of a real host's agent.
constexpr Duration kProbeEvery = Seconds(20);

}  // namespace

AgentFleet::AgentFleet(Options options) : options_(std::move(options)), nodes_(options_.agents) {
  if (Status status = loop_.Open(); !status.ok()) GiveUp(status.text());
}

AgentFleet::~AgentFleet() {
  if (!thread_.joinable()) return;
  (void)loop_.Post([this] {
    for (Node& node : nodes_) node.agent.reset();
    loop_.Stop();
  });
  thread_.join();
}

void AgentFleet::Join(const std::shared_ptr<grpc::Channel>& admin) {
  constexpr size_t kThreads = 4;
  std::vector<std::thread> workers;
  workers.reserve(kThreads);
  std::atomic<size_t> next{0};
  for (size_t i = 0; i < kThreads; ++i) {
    workers.emplace_back([&] {
      for (size_t at = next++; at < nodes_.size(); at = next++) JoinOne(admin, at);
    });
  }
  for (std::thread& worker : workers) worker.join();
}

void AgentFleet::JoinOne(const std::shared_ptr<grpc::Channel>& admin, size_t at) {
  admin::v1::CreateJoinTokenRequest request;
  request.set_name(NameOf(at));
  admin::v1::CreateJoinTokenResponse response;
  const grpc::Status status = admin::v1::Gateways::NewStub(admin)->CreateJoinToken(
      PatientContext().get(), request, &response);
  if (!status.ok()) GiveUp("join token: " + status.error_message());
  const auto file = identity::ReadJoinFile(response.token_file());
  if (!file.ok()) GiveUp(file.status().text());
  const std::string directory = options_.directory + "/" + std::to_string(at);
  std::filesystem::create_directory(directory);
  auto joined = agent::NodeIdentity::Join(directory, file.value(), NameOf(at));
  if (!joined.ok()) GiveUp(joined.status().text());
  nodes_[at].identity = std::make_unique<agent::NodeIdentity>(std::move(*joined));
}

void AgentFleet::Start() {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    nodes_[i].gateway = std::make_unique<FakeGateway>(loop_,
                                                      "10." + std::to_string(i / 65536) + "." +
                                                          std::to_string(i / 256 % 256) + "." +
                                                          std::to_string(i % 256),
                                                      options_.remember);
  }
  (void)loop_.Post([this] {
    for (Node& node : nodes_) {
      node.agent = std::make_unique<agent::Agent>(
          loop_, *node.identity, *node.gateway,
          agent::AgentOptions{.version = "test", .state_file = {}, .probe_every = kProbeEvery});
    }
  });
  thread_ = std::thread([this] { loop_.Run(); });
}

}  // namespace rocegw::testing
