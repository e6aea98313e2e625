// SPDX-License-Identifier: Apache-2.0
// Hosts of gateways as the driver of upgrades sees them, and the queue of their answers. Any
// thread; outlives the driver.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "controlplane/upgrades/take_over_records.h"
#include "controlplane/upgrades/upgrade_rules.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::upgrades {

// Answer of an agent, or the gRPC code that says why there is none.
struct HostAnswer {
  int code = 0;
  std::string message;
  fleet::v1::TunnelAnswer answer;
};

class HostAccess {
 public:
  virtual ~HostAccess() = default;
  // Returns what is known of the host of "gateways/G".
  virtual HostState StateOf(const std::string& gateway) = 0;
  // Returns what the gateways have reported about their take-overs.
  virtual TakeOverReports TakeOvers() = 0;
  // Calls `done` once, on any thread, at the latest soon after `limit`.
  virtual void Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
                   std::chrono::seconds limit, std::function<void(HostAnswer)> done) = 0;
};

struct Arrived {
  std::string gateway;
  uint64_t number = 0;  // number of the question
  HostAnswer answer;
};

// Queue of answers, bounded by the questions in flight. Answers stay until the driver can handle
// them. Shared with callbacks that may come after the driver's end. Any thread.
class Inbox {
 public:
  void Put(Arrived arrived) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(arrived));
    woken_ = true;
    changed_.notify_one();
  }
  // Wakes a waiting Await.
  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  // Waits for the next Put or Wake. Answers that wait already do not end it: a driver without a
  // store would ask the store without a pause.
  void Await(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return woken_; });
    woken_ = false;
  }
  // Returns the next answer; nullopt: there is none.
  std::optional<Arrived> Take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    Arrived arrived = std::move(waiting_.front());
    waiting_.pop_front();
    return arrived;
  }
  // Drops all answers.
  void Clear() {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Arrived> waiting_;
  bool woken_ = false;
};

}  // namespace rocegw::upgrades
