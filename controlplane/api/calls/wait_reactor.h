// SPDX-License-Identifier: Apache-2.0
// Call that waits for a condition: answers when it holds, or shortly before the deadline with the
// state at that time. Checks after each transaction. gRPC's and the follower's threads; deletes
// itself when the call is done.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "controlplane/sync/fleet_follower.h"

namespace rocegw::api {

class WaitReactor final : public grpc::ServerUnaryReactor {
 public:
  // Fills in the response. Returns true if the condition holds or can never hold; an error ends the
  // call.
  struct Look {
    bool done = false;
    grpc::Status status;
  };
  using Looker = std::function<Look(const sync::Fleet&)>;

  WaitReactor(sync::FleetFollower& follower, Looker look)
      : follower_(follower), look_(std::move(look)) {
    waiting_->reactor = this;
  }

  void Start(std::chrono::system_clock::time_point deadline) {
    using std::chrono::system_clock;
    listener_ = follower_.Listen(
        [this](const sync::Fleet& fleet, const sync::FleetChange&) { LookAgain(fleet, false); });
    const auto until = std::max(system_clock::now(), deadline - kBeforeDeadline);
    alarm_.Set(until, [waiting = waiting_](bool) {
      const std::lock_guard lock(waiting->mutex);
      WaitReactor* const self = waiting->reactor;
      if (self == nullptr) return;
      self->follower_.Read([self](const sync::Fleet& fleet) { self->LookAgain(fleet, true); });
    });
    follower_.Read([this](const sync::Fleet& fleet) { LookAgain(fleet, false); });
    Release();
  }
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    End(grpc::Status::CANCELLED);
  }
  void OnDone() override { Release(); }

 private:
  static constexpr std::chrono::milliseconds kBeforeDeadline{200};
  // State for the alarm's callback, which gRPC runs on its own thread, also after a cancel; call,
  // server and follower may be destroyed by then.
  struct Waiting {
    std::mutex mutex;
    WaitReactor* reactor = nullptr;
  };

  void LookAgain(const sync::Fleet& fleet, bool last) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    const Look seen = look_(fleet);
    if (!seen.status.ok() || seen.done || last) End(seen.status);
  }
  void End(const grpc::Status& status) {
    if (ended_) return;
    ended_ = true;
    Finish(status);
  }
  // Called twice: when the start has finished and when the call is done. The second call deletes
  // the object.
  void Release() {
    {
      const std::lock_guard lock(mutex_);
      if (--holders_ != 0) return;
    }
    {
      const std::lock_guard lock(waiting_->mutex);
      waiting_->reactor = nullptr;
    }
    follower_.Unlisten(listener_);
    delete this;
  }

  sync::FleetFollower& follower_;
  const Looker look_;
  sync::FleetFollower::ListenerId listener_ = 0;
  const std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  grpc::Alarm alarm_;  // its destructor cancels it
  std::mutex mutex_;
  bool ended_ = false;
  int holders_ = 2;
};

}  // namespace rocegw::api
