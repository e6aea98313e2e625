// SPDX-License-Identifier: Apache-2.0
#include "agent/kube/pods/pod_resources.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "agent/kube/pool_offer.h"
#include "agent/reconcile/unary_call.h"
#include "podresources.grpc.pb.h"

namespace rocegw::agent {
namespace {

// An attach waits for its verdict for at most 5 s.
constexpr std::chrono::seconds kDeadline(3);
constexpr Duration kPatience = Milliseconds(4500);
// Pause after kubelet rejected a query for its rate; other users of the rate need a share.
constexpr Duration kBackoff = Milliseconds(250);
constexpr int kReconnectMs = 500;
// Size for a node with the maximum number of pods.
constexpr int kLargestAnswer = 16 << 20;

Assignments Read(const v1::ListPodResourcesResponse& response) {
  Assignments assignments;
  for (const v1::PodResources& pod : response.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      std::vector<DeviceKey> slots;
      for (const v1::ContainerDevices& devices : container.devices()) {
        if (!devices.resource_name().starts_with(kResourceDomain)) continue;
        for (const std::string& id : devices.device_ids())
          slots.emplace_back(devices.resource_name(), id);
      }
      for (const v1::DynamicResource& claim : container.dynamic_resources()) {
        for (const v1::ClaimResource& part : claim.claim_resources()) {
          for (const v1::CDIDevice& device : part.cdi_devices()) {
            const std::string kind = std::string(kClaimedSlot) + "=";
            if (device.name().starts_with(kind))
              slots.emplace_back(kClaimedSlot, device.name().substr(kind.size()));
          }
        }
      }
      const PodName holder{pod.namespace_(), pod.name(), slots.size() > 1};
      for (const DeviceKey& slot : slots) {
        std::vector<PodName>& holders = assignments[slot];
        if (std::ranges::find(holders, holder) == holders.end()) holders.push_back(holder);
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

PodResources::PodResources(ControlLoop& loop, const std::string& socket, CheckpointFiles files)
    : loop_(loop), files_(std::move(files)), next_at_(ControlLoop::Now()) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestAnswer);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMs);
  kubelet_ = std::make_shared<Kubelet>(
      grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments));
}

PodResources::~PodResources() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void PodResources::List(Listed done) {
  waiting_.push_back({std::move(done), ControlLoop::Now() + kPatience});
  AskWhenAllowed();
}

void PodResources::ListRecent(Listed done) {
  const TimePoint now = ControlLoop::Now();
  if (recent_ && now - recent_at_ < kRecentAge) return done(*recent_, true);
  Waiter waiter{std::move(done), now + kPatience, true};
  if (asking_ && current_) return asked_.push_back(std::move(waiter));
  waiting_.push_back(std::move(waiter));
  AskWhenAllowed();
}

void PodResources::Forget() {
  recent_.reset();
  current_ = false;
}

void PodResources::AskWhenAllowed() {
  if (asking_ || timer_ != 0 || waiting_.empty()) return;
  if (ControlLoop::Now() >= next_at_) return Ask();
  timer_ = loop_.At(next_at_, [this] {
    timer_ = 0;
    AskWhenAllowed();
  });
}

void PodResources::Ask() {
  const TimePoint began = ControlLoop::Now();
  asking_ = true;
  current_ = true;
  next_at_ = began + kPause;
  asked_ = std::exchange(waiting_, {});
  StartUnary<v1::ListPodResourcesResponse>(
      loop_, kubelet_, v1::ListPodResourcesRequest(), In(kDeadline),
      [this](auto... call) { kubelet_->stub->async()->List(call...); },
      [this, began, alive = alive_](const grpc::Status& status,
                                    const v1::ListPodResourcesResponse& response) {
        if (!*alive) return;
        asking_ = false;
        const std::vector<Waiter> asked = std::exchange(asked_, {});
        if (status.ok()) {
          Assignments assignments = Read(response);
          AddFromCheckpoint(files_, assignments);
          if (current_) {
            recent_ = assignments;
            recent_at_ = began;
          }
          Answer(asked, assignments);
        } else {
          recent_.reset();
          const Status problem(EIO, "kubelet does not say whose it is: " + status.error_message());
          if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
            AskAgain(asked, problem);
          } else {
            Answer(asked, problem);
          }
        }
        if (*alive) AskWhenAllowed();
      });
}

void PodResources::AskAgain(std::vector<Waiter> waiters, const Status& status) {
  const TimePoint now = ControlLoop::Now();
  next_at_ = now + kBackoff;
  const auto late = std::ranges::partition(
      waiters, [&](const Waiter& waiter) { return waiter.until > next_at_; });
  const std::vector<Waiter> over(late.begin(), late.end());
  waiting_.insert(waiting_.end(), std::make_move_iterator(waiters.begin()),
                  std::make_move_iterator(late.begin()));
  Answer(over, status);
}

void PodResources::Answer(const std::vector<Waiter>& waiters, const StatusOr<Assignments>& answer) {
  for (const Waiter& waiter : waiters) waiter.done(answer, waiter.recent);
}

}  // namespace rocegw::agent
