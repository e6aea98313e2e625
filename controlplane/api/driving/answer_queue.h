// SPDX-License-Identifier: Apache-2.0
// Answers of agents on their way to the thread of a driver (migrations, upgrades). The questions in
// flight bound the length. Shared with callbacks that may come after the driver's end. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace rocegw::api {

template <typename Answer>
class AnswerQueue {
 public:
  void Put(Answer answer) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(answer));
    woken_ = true;
    changed_.notify_one();
  }
  // Wakes a waiting Await.
  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  // Waits for the next Put or Wake. Answers that wait already do not end it: a driver that cannot
  // handle them without its store would ask the store without a pause.
  void Await(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return woken_; });
    woken_ = false;
  }
  // Returns the next answer; nullopt: there is none.
  std::optional<Answer> Take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    std::optional<Answer> answer(std::move(waiting_.front()));
    waiting_.pop_front();
    return answer;
  }
  // Drops all answers.
  void Clear() {
    const std::lock_guard lock(mutex_);
    waiting_.clear();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Answer> waiting_;
  bool woken_ = false;
};

}  // namespace rocegw::api
