// SPDX-License-Identifier: Apache-2.0
// What happened when, in a file that stays when the test fails: milliseconds since the beginning
// and a line of text. Any thread.
#pragma once

#include <chrono>
#include <fstream>
#include <mutex>
#include <string>

namespace rocegw::testing::chaos {

class EventLog {
 public:
  explicit EventLog(const std::string& file) : file_(file) {}

  void Note(const std::string& text) {
    const auto since = std::chrono::steady_clock::now() - began_;
    const std::lock_guard lock(mutex_);
    file_ << std::chrono::duration_cast<std::chrono::milliseconds>(since).count() << ' ' << text
          << std::endl;
  }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::ofstream file_;
};

}  // namespace rocegw::testing::chaos
