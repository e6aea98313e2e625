// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pod_resources.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "agent/reconcile/unary_call.h"
#include "podresources.grpc.pb.h"

namespace rocegw::agent {
namespace {

// An attach waits for the verdict for 5 s at most.
constexpr std::chrono::seconds kDeadline(3);
constexpr int kReconnectMs = 500;
// Of a node with the most pods.
constexpr int kLargestAnswer = 16 << 20;

Assignments Read(const v1::ListPodResourcesResponse& response) {
  Assignments assignments;
  for (const v1::PodResources& pod : response.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::ContainerDevices& devices : container.devices()) {
        if (!devices.resource_name().starts_with(kResourceDomain)) continue;
        for (const std::string& id : devices.device_ids())
          assignments[{devices.resource_name(), id}] = {pod.namespace_(), pod.name()};
      }
    }
  }
  return assignments;
}

}  // namespace

struct PodResources::Kubelet {
  explicit Kubelet(std::shared_ptr<grpc::Channel> c)
      : channel(std::move(c)), stub(v1::PodResourcesLister::NewStub(channel)) {}
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::PodResourcesLister::Stub> stub;
};

PodResources::PodResources(session::ControlLoop& loop, const std::string& socket) : loop_(loop) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestAnswer);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  kubelet_ = std::make_shared<Kubelet>(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
}

PodResources::~PodResources() { *alive_ = false; }

void PodResources::List(Listed done) {
  waiting_.push_back(std::move(done));
  if (!asking_) Ask();
}

void PodResources::Ask() {
  asking_ = true;
  auto asked = std::make_shared<std::vector<Listed>>(std::exchange(waiting_, {}));
  StartUnary<v1::ListPodResourcesResponse>(
      loop_, kubelet_, v1::ListPodResourcesRequest(), In(kDeadline),
      [this](auto... call) { kubelet_->stub->async()->List(call...); },
      [this, asked, alive = alive_](const grpc::Status& status,
                                    const v1::ListPodResourcesResponse& response) {
        if (!*alive) return;
        asking_ = false;
        if (!waiting_.empty()) Ask();
        const StatusOr<Assignments> answer =
            status.ok()
                ? StatusOr<Assignments>(Read(response))
                : Status(EIO, "kubelet does not say whose it is: " + status.error_message());
        for (const Listed& done : *asked) done(answer);
      });
}

}  // namespace rocegw::agent
