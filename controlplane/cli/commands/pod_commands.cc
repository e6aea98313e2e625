// SPDX-License-Identifier: Apache-2.0
// pod ready, pod drain: the readiness probe and the hook of a pod of gateways, which the image has
// no shell for. A node has two such pods while the gateway of one takes over from the other's.
#include <iostream>

#include "controlplane/cli/client/own_container.h"
#include "controlplane/cli/client/state_client.h"
#include "controlplane/cli/commands/local_drain_command.h"
#include "controlplane/cli/program.h"

namespace rocegw::cli {
namespace {

// The lock lies beside the socket.
bool IsInThisContainer(const Program& program) {
  Endpoint endpoint;
  if (!ChooseEndpoint(program.options.choice, endpoint).ok()) return false;
  const std::string& socket = endpoint.socket;
  return HolderIsInThisContainer(socket.substr(0, socket.rfind('/') + 1) + "lock", "/proc");
}

int PodIsReady(Program& program) {
  if (!IsInThisContainer(program))
    return Fail({kConditionFalse, "the gateway of this node is in another container", {}});
  if (auto result = program.Open(); !result.ok()) return Fail(result);
  types::v1::GatewayStatus status;
  if (auto result = StateClient(program.rpc(), "").GetStatus(status); !result.ok())
    return Fail(result);
  if (!status.ready()) return Fail({kConditionFalse, "the gateway is not ready", {}});
  std::cout << "ready\n";
  return kOk;
}

int DrainPod(Program& program) {
  if (!IsInThisContainer(program)) {
    std::cout << "the gateway of this node is in another container\n";
    return kOk;
  }
  // A gateway that takes over meanwhile goes on with the drain, which was not meant for its pod.
  return OrderLocalDrain(program, {.drain = true, .wait = true, .goes_on = [&program] {
                                     return IsInThisContainer(program);
                                   }});
}

}  // namespace

void AddPodCommands(CLI::App& app, Program& program) {
  const auto here = [&program](auto work) {
    return [&program, work] {
      program.options.choice.local = true;
      return work(program);
    };
  };
  CLI::App* const pod =
      program.Add(app, "pod", "probe and hook of a gateway's pod (Kubernetes)",
                  "  rocegwctl --socket /run/rocegw/grpc.sock pod ready\n"
                  "  rocegwctl --socket /run/rocegw/grpc.sock --timeout 30s pod drain\n"
                  "Two pods are on a node while one's gateway takes over from the other's. The\n"
                  "file `lock` beside the socket says which process is the gateway.",
                  nullptr);
  program.Add(*pod, "ready", "is the node's gateway in this container, and ready? 10: no", "",
              here(&PodIsReady));
  program.Add(*pod, "drain", "drain --wait, if the node's gateway is in this container", "",
              here(&DrainPod));
}

}  // namespace rocegw::cli
