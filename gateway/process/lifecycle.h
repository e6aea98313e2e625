// SPDX-License-Identifier: Apache-2.0
// Start and stop order of the daemon's parts: each part starts after those added before it, and
// stops before them. If a part fails to start, the started parts stop in reverse order. Main thread
// only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gateway/base/status.h"

namespace rocegw::process {

class Lifecycle {
 public:
  Lifecycle() = default;
  Lifecycle(const Lifecycle&) = delete;
  Lifecycle& operator=(const Lifecycle&) = delete;
  ~Lifecycle() { Stop(); }

  // Adds a part. `stop` runs once, and only if `start` succeeded.
  void Add(std::string part, std::function<Status()> start, std::function<void()> stop);

  // Called with the name of each part before it starts, after it started and before it stops.
  std::function<void(const std::string& part)> on_start;
  std::function<void(const std::string& part)> on_started;
  std::function<void(const std::string& part)> on_stop;

  // Starts all parts. Returns the error of the part that failed: its text names part and remedy.
  Status Start();
  // The same, but parts that have started go on when one fails: for a process that ends then
  // without touching what the parts share with another process.
  Status StartOnly();
  void Stop();

 private:
  struct Part {
    std::string name;
    std::function<Status()> start;
    std::function<void()> stop;
  };
  std::vector<Part> parts_;
  size_t started_ = 0;
};

}  // namespace rocegw::process
