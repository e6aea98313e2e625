// SPDX-License-Identifier: Apache-2.0
// A controller's process with a state directory of its own and whatever a test needs to talk to it:
// certificates of users and nodes, channels, calls with deadlines. One thread.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/identity/certificate_authority.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"
#include "rocegw/types/v1/role_binding.pb.h"
#include "tests/e2e/daemon/daemon_process.h"

namespace rocegw::testing {

// What a client shows and whom it trusts; PEM.
struct Credential {
  std::string key;
  std::string certificate;
  std::string trust;
};

class ControllerHost {
 public:
  // `more`: lines of configuration.
  explicit ControllerHost(const std::string& more = {});
  ~ControllerHost();
  ControllerHost(const ControllerHost&) = delete;
  ControllerHost& operator=(const ControllerHost&) = delete;

  void Start();
  // With this hard limit of open descriptors.
  void StartWithDescriptors(int descriptors);
  // With a wall clock that is ahead by as many seconds as File("clock") says.
  void StartWithClock();
  // As before, for a start that fails: what it says.
  std::string FailWithClock();
  // A start that may fail: whether it is ready.
  bool TryStart();
  // A start that fails for what the machine lacks: what it says.
  std::string Fail();
  void Kill();  // SIGKILL
  int Stop();   // SIGTERM; its exit status
  DaemonProcess& process() { return *process_; }

  std::string File(const std::string& name) const { return directory_ + "/" + name; }
  std::string State(const std::string& name) const { return directory_ + "/state/" + name; }
  std::string config_file() const { return File("config.yaml"); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string trust() const;

  // The administrator on the unix socket.
  std::shared_ptr<grpc::Channel> AdminChannel() const;
  // Over TLS, on a connection of its own. server_name: expected there.
  std::shared_ptr<grpc::Channel> TlsChannel(const Credential& credential,
                                            const std::string& server_name = {}) const;
  Credential Nobody() const { return {.key = {}, .certificate = {}, .trust = trust()}; }
  // Made by the program.
  Credential MakeUser(const std::string& name) const;
  // Returns the text of a join file for the gateway, whose token is made over the admin socket.
  std::string MakeJoinFile(const std::string& id) const;
  // Writes the files of an agent whose state directory is File("agent"), for the gateway "node".
  void PrepareAgent() const;
  // Command by which that agent joins.
  std::string JoinCommand() const;
  // With a join token made over the admin socket.
  Credential JoinNode(const std::string& id) const;
  // Made by the test with the controller's own authority.
  std::unique_ptr<identity::CertificateAuthority> Authority() const;

  // Gives a user a role, as the administrator.
  void Bind(const std::string& user, types::v1::Role role, const std::string& tenant = {}) const;
  void CreateTenant(const std::string& id) const;

 private:
  void StartIn(const std::string& shell);

  std::string directory_;
  int port_ = 0;
  std::optional<DaemonProcess> process_;
};

// Returns a port that is free now; a process that is restarted on it finds it free again.
int FreePort();

std::unique_ptr<grpc::ClientContext> ContextFor(
    std::chrono::seconds time = std::chrono::seconds(20));

// What the health service says of the whole server.
struct HealthAnswer {
  bool serving = false;
  std::string certificate;  // of the server, PEM; empty without TLS
};
grpc::Status CheckHealth(const std::shared_ptr<grpc::Channel>& channel,
                         HealthAnswer* answer = nullptr);

// ErrorInfo.reason; empty: the status has none.
std::string ReasonOf(const grpc::Status& status);

// A certificate request's key and text.
struct NodeKey {
  std::string key;
  std::string request;
};
NodeKey NewNodeKey();

// What a shell command prints; its exit status must be 0.
std::string Shell(const std::string& command);

}  // namespace rocegw::testing
