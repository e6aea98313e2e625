// SPDX-License-Identifier: Apache-2.0
// Watch of the API: sends the existing objects, then each transaction that changes one, at the pace
// of its client: one message is written at a time, and later changes are read from the follower's
// history. A watch that falls behind that history must list again. An object is sent in its state
// at the time of sending, so after two quick changes the newer state may be sent twice. The watch
// ends when its caller's rights change. Deletes itself when the call is done. gRPC's and the
// follower's threads.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controlplane/api/calls/api_error.h"
#include "controlplane/api/writes/object_kind.h"
#include "controlplane/api/writes/worked_out_status.h"
#include "controlplane/model/label_selector.h"
#include "controlplane/sync/fleet_follower.h"

namespace rocegw::api {

// Objects of a watch.
struct WatchSubject {
  model::Collection collection = model::Collection::kTenants;
  std::string parent;  // tenant id; empty: all
  model::LabelSelector selector;
  std::vector<std::string> tenants;  // visible to the caller; empty: all
};

template <typename Object, typename Response>
class WatchReactor final : public grpc::ServerWriteReactor<Response> {
 public:
  // Adds a changed object to a message.
  using Add = std::function<Object*(Response&)>;

  // Returns true if the caller still has the rights of its admission. Called under the follower's
  // lock.
  using StillMay = std::function<bool(const controllers::FleetView&)>;

  // `usage`: may be nullptr; outlives the watch, as the follower does.
  WatchReactor(sync::FleetFollower& follower, const sync::UsageBook* usage, WatchSubject subject,
               Add add, StillMay still_may)
      : follower_(follower),
        usage_(usage),
        subject_(std::move(subject)),
        add_(std::move(add)),
        still_may_(std::move(still_may)) {}

  // `start`: first revision to send; 0: the existing objects come first.
  void Start(store::Revision start) {
    listener_ = follower_.Listen([this](const sync::Fleet& fleet, const sync::FleetChange& change) {
      if (TouchesRights(change)) CheckRights(fleet);
      Advance(fleet);
    });
    follower_.Read([&](const sync::Fleet& fleet) {
      // Rights may have changed since the admission.
      CheckRights(fleet);
      {
        const std::lock_guard lock(mutex_);
        if (start == 0) TakeSnapshot(fleet);
        position_ = start == 0 ? fleet.view.revision : start - 1;
        started_ = true;
        if (cancelled_) End(grpc::Status::CANCELLED);
      }
      Advance(fleet);
    });
  }

  void OnWriteDone(bool ok) override {
    follower_.Read([&](const sync::Fleet& fleet) {
      {
        const std::lock_guard lock(mutex_);
        writing_ = false;
        if (!ok) return;
      }
      Advance(fleet);
    });
  }
  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    // Start is still to come, so the object must not be deleted before.
    cancelled_ = true;
    if (started_) End(grpc::Status::CANCELLED);
  }
  void OnDone() override {
    follower_.Unlisten(listener_);
    delete this;
  }

 private:
  // Objects per message of the first state.
  static constexpr size_t kChunk = 200;

  bool IsWanted(const model::ResourceName& name) const {
    return name.collection == subject_.collection &&
           (subject_.parent.empty() || name.parent == subject_.parent) &&
           (subject_.tenants.empty() || std::ranges::count(subject_.tenants, name.Tenant()) != 0);
  }
  bool IsSelected(const Object& object) const {
    return subject_.selector.Matches(object.meta().labels());
  }

  static bool TouchesRights(const sync::FleetChange& change) {
    return change.everything ||
           std::ranges::any_of(change.changed, [](const controllers::Changed& changed) {
             return changed.name.collection == model::Collection::kRoleBindings;
           });
  }
  void CheckRights(const sync::Fleet& fleet) {
    if (still_may_(fleet.view)) return;
    const std::lock_guard lock(mutex_);
    End(ToStatus({grpc::StatusCode::PERMISSION_DENIED,
                  "RIGHTS_CHANGED",
                  "what you may see has changed; watch again",
                  {},
                  {}}));
  }

  void End(const grpc::Status& status) {
    if (ended_) return;
    ended_ = true;
    this->Finish(status);
  }

  void TakeSnapshot(const sync::Fleet& fleet) {
    for (const auto& [name, known] : controllers::ObjectsOf<Object>(fleet.view)) {
      const auto parsed = model::NameOf(name);
      if (!IsWanted(parsed) || !IsSelected(known.object)) continue;
      WorkOutStatus(fleet, usage_, snapshot_.emplace_back(known.object));
    }
    snapshot_left_ = true;
  }

  void Send() {
    writing_ = true;
    this->StartWrite(&response_);
  }

  // Called under the follower's lock, which is always taken first.
  void Advance(const sync::Fleet& fleet) {
    const std::lock_guard lock(mutex_);
    if (!started_ || writing_ || ended_) return;
    response_.Clear();
    if (snapshot_left_) {
      const size_t count = std::min(kChunk, snapshot_.size());
      for (size_t i = snapshot_.size() - count; i < snapshot_.size(); ++i)
        add_(response_)->Swap(&snapshot_[i]);
      snapshot_.resize(snapshot_.size() - count);
      snapshot_left_ = !snapshot_.empty();
      response_.set_revision(position_);
      response_.set_synced(!snapshot_left_);
      return Send();
    }
    for (;;) {
      const std::optional<sync::PastChange> next = follower_.NextAfter(position_);
      if (!next.has_value()) {
        return End(ToStatus({grpc::StatusCode::OUT_OF_RANGE,
                             "REVISION_COMPACTED",
                             "what happened since is not remembered any more; list again",
                             {},
                             {}}));
      }
      if (next->revision == 0) return;
      position_ = next->revision;
      if (Fill(fleet, *next)) return Send();
    }
  }

  // Returns false if the change does not concern this client.
  bool Fill(const sync::Fleet& fleet, const sync::PastChange& change) {
    response_.set_revision(change.revision);
    response_.set_synced(true);
    const auto& objects = controllers::ObjectsOf<Object>(fleet.view);
    bool any = false;
    for (const model::ResourceName& name : change.names) {
      if (!IsWanted(name)) continue;
      any = true;
      const auto known = objects.find(name.Text());
      // An object that does not match any more counts as deleted for this client.
      if (known == objects.end() || !IsSelected(known->second.object)) {
        response_.add_deleted(name.Text());
      } else {
        Object& object = *add_(response_);
        object = known->second.object;
        WorkOutStatus(fleet, usage_, object);
      }
    }
    return any;
  }

  sync::FleetFollower& follower_;
  const sync::UsageBook* const usage_;
  const WatchSubject subject_;
  const Add add_;
  const StillMay still_may_;
  sync::FleetFollower::ListenerId listener_ = 0;
  std::mutex mutex_;
  store::Revision position_ = 0;
  std::vector<Object> snapshot_;
  bool snapshot_left_ = false;
  Response response_;
  bool started_ = false;
  bool cancelled_ = false;
  bool writing_ = false;
  bool ended_ = false;
};

// Watch that is refused before it begins.
template <typename Response>
class RefusedWatch final : public grpc::ServerWriteReactor<Response> {
 public:
  explicit RefusedWatch(const ApiError& error) { this->Finish(ToStatus(error)); }
  void OnDone() override { delete this; }
};

}  // namespace rocegw::api
