// SPDX-License-Identifier: Apache-2.0
// Durations of the steps of a take-over in one process, for its log: they show what a pause
// consists of. Plain values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gateway/base/time.h"

namespace rocegw::take_over {

class StepTimes {
 public:
  // Forgets all steps. The first one begins now.
  void Begin(TimePoint now) {
    steps_.clear();
    last_ = now;
  }
  // Ends a step and begins the next one. Steps of one name are added.
  void End(const std::string& name, TimePoint now) {
    const Duration took = now - std::exchange(last_, now);
    if (!steps_.empty() && steps_.back().first == name) {
      steps_.back().second = steps_.back().second + took;
    } else {
      steps_.emplace_back(name, took);
    }
  }
  // Returns "NAME 1.2 ms, NAME 0.3 ms" of the steps that took at least 0.1 ms.
  std::string Line() const;

 private:
  std::vector<std::pair<std::string, Duration>> steps_;
  TimePoint last_;
};

}  // namespace rocegw::take_over
