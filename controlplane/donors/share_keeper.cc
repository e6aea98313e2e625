// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/share_keeper.h"

#include <spdlog/spdlog.h>

#include <utility>
#include <vector>

#include "controlplane/donors/donor_shares.h"
#include "controlplane/model/serialized.h"
#include "controlplane/model/stored.h"

namespace rocegw::donors {

ShareKeeper::ShareKeeper(store::Store& store, const sync::FleetFollower& follower,
                         std::string controller, std::chrono::milliseconds interval)
    : store_(store),
      follower_(follower),
      controller_(std::move(controller)),
      interval_(interval),
      thread_([this] { Run(); }) {}

ShareKeeper::~ShareKeeper() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void ShareKeeper::Run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval_, [this] { return stopping_; })) {
    lock.unlock();
    Pass();
    lock.lock();
  }
}

void ShareKeeper::Pass() {
  std::vector<store::Transaction> writes;
  follower_.Read([&](const sync::Fleet& fleet) {
    // Another controller would only lose the race for the same writes.
    const bool leads = !fleet.replicas.empty() && fleet.replicas.begin()->first == controller_;
    if (!leads || fleet.view.revision == seen_) return;
    seen_ = fleet.view.revision;
    for (const std::string& name : fleet.view.tenants_with_shares) {
      const auto& known = fleet.view.tenants.at(name);
      auto status = NewShares(fleet.view, known);
      if (!status.has_value()) continue;
      types::v1::Tenant stored;
      stored.mutable_status()->Swap(&*status);
      const model::ResourceName resource = model::NameOf(name);
      const std::string key = model::KeyOf(model::Part::kStatus, resource);
      store::Transaction& write = writes.emplace_back();
      write.compares = {store::Compare::ModifiedAt(model::KeyOf(model::Part::kIntent, resource),
                                                   known.intent_revision),
                        store::Compare::ModifiedAt(key, known.status_revision)};
      write.then = {store::Operation::Put(key, model::Serialized(stored))};
    }
  });
  // A write that is refused is of an old view: the newer one comes with the next pass.
  for (store::Transaction& write : writes) {
    if (const auto result = store_.Txn(std::move(write)); !result.ok()) {
      spdlog::warn("shares of donors are not stored: {}", result.status().text());
      seen_ = 0;
    }
  }
}

}  // namespace rocegw::donors
