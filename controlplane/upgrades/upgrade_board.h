// SPDX-License-Identifier: Apache-2.0
// Summary of the newest upgrade for metrics: the driver posts it after each pass, and whoever
// serves metrics reads it. Only the controller that drives has one. Any thread.
#pragma once

#include <mutex>
#include <optional>
#include <utility>

#include "rocegw/admin/v1/upgrades.pb.h"

namespace rocegw::upgrades {

class UpgradeBoard {
 public:
  struct View {
    bool drives = false;
    // Without its gateways; nothing: none has been driven here.
    std::optional<admin::v1::Upgrade> upgrade;
  };

  void Post(View view) {
    const std::lock_guard lock(mutex_);
    view_ = std::move(view);
  }
  View Read() const {
    const std::lock_guard lock(mutex_);
    return view_;
  }

 private:
  mutable std::mutex mutex_;
  View view_;
};

}  // namespace rocegw::upgrades
