// SPDX-License-Identifier: Apache-2.0
#include "gateway/take_over/step_times.h"

namespace rocegw::take_over {

std::string StepTimes::Line() const {
  std::string line;
  for (const auto& [name, took] : steps_) {
    const int64_t tenths = (took.ns + 50'000) / 100'000;
    if (tenths == 0) continue;
    if (!line.empty()) line += ", ";
    line += name + " " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " ms";
  }
  return line.empty() ? "nothing took 0.1 ms" : line;
}

}  // namespace rocegw::take_over
