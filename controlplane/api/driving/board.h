// SPDX-License-Identifier: Apache-2.0
// Summary of what a driver does, for metrics: the driver posts it after each pass, and the server
// of metrics reads it. Only the controller that drives has one. Any thread.
#pragma once

#include <mutex>
#include <utility>

namespace rocegw::api {

template <typename Summary>
class Board {
 public:
  using View = Summary;

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

}  // namespace rocegw::api
