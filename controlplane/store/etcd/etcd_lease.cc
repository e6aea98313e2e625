// SPDX-License-Identifier: Apache-2.0
#include "controlplane/store/etcd/etcd_lease.h"

#include <algorithm>
#include <utility>

namespace rocegw::store {
namespace {

constexpr std::chrono::milliseconds kRetry{200};
constexpr std::chrono::seconds kRevokeTry{1};

}  // namespace

EtcdLease::EtcdLease(EtcdEndpoints& endpoints, LeaseId id, std::chrono::seconds time_to_live,
                     Clock::time_point asked, std::function<void()> lost)
    : endpoints_(endpoints),
      id_(id),
      time_to_live_(time_to_live),
      lost_(std::move(lost)),
      expires_(asked + time_to_live),
      thread_([this] { Run(); }) {}

EtcdLease::~EtcdLease() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (context_ != nullptr) context_->TryCancel();
    changed_.notify_all();
  }
  thread_.join();
  Revoke();
}

void EtcdLease::Run() {
  const std::chrono::milliseconds third = std::chrono::milliseconds(time_to_live_) / 3;
  std::chrono::milliseconds pause = third;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, pause, [this] { return stopping_; })) return;
    }
    const Clock::time_point sent = Clock::now();
    const Renewal renewal = sent < expires_.load() ? Renew() : Renewal::kGone;
    if (renewal == Renewal::kDone) {
      expires_ = sent + time_to_live_;
    } else if (renewal == Renewal::kGone) {
      expires_ = Clock::time_point::min();
      if (lost_) lost_();
      return;
    }
    pause = renewal == Renewal::kDone ? third : kRetry;
  }
}

EtcdLease::Renewal EtcdLease::Renew() {
  const size_t index = endpoints_.current();
  grpc::ClientContext context;
  const auto patience = std::clamp<std::chrono::milliseconds>(
      std::chrono::milliseconds(time_to_live_) / 4, std::chrono::milliseconds(300),
      std::chrono::seconds(2));
  context.set_deadline(std::chrono::system_clock::now() + patience);
  RequireLeader(context);
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return Renewal::kFailed;
    context_ = &context;
  }
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(id_);
  etcdserverpb::LeaseKeepAliveResponse response;
  // Stream of one message: the next renewal chooses a new member if necessary.
  auto stream = endpoints_.member(index).lease->LeaseKeepAlive(&context);
  const bool answered = stream->Write(request) && stream->WritesDone() && stream->Read(&response);
  context.TryCancel();
  static_cast<void>(stream->Finish());
  {
    const std::lock_guard lock(mutex_);
    context_ = nullptr;
  }
  if (answered) return response.ttl() > 0 ? Renewal::kDone : Renewal::kGone;
  endpoints_.Failed(index);
  return Renewal::kFailed;
}

void EtcdLease::Revoke() {
  // An ended lease need not be revoked; one of an unreachable cluster ends by itself.
  for (size_t tries = 0; EtcdLease::alive() && tries < 2; ++tries) {
    const size_t index = endpoints_.current();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kRevokeTry);
    RequireLeader(context);
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(id_);
    etcdserverpb::LeaseRevokeResponse response;
    const auto status = endpoints_.member(index).lease->LeaseRevoke(&context, request, &response);
    if (!WorthAnotherTry(status)) return;
    endpoints_.Failed(index);
  }
}

}  // namespace rocegw::store
