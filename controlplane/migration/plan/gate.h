// SPDX-License-Identifier: Apache-2.0
// Gate of a plan: a comparison in PromQL that has to hold for every time series. PromQL drops the
// series for which a comparison is false, so that "false" and "no data" look the same; the gate is
// asked with the modifier "bool" instead, which keeps both apart. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace rocegw::migration {

struct Gate {
  std::string query;  // the comparison with "bool": 1 and 0 for each series
  std::string left;   // the left side: not-a-number there makes the comparison meaningless
};

inline constexpr size_t kLongestGate = 4096;

// Reads a gate. `problem`: why it is none, one line; empty: it was read. Only what stands outside
// of parentheses is looked at; Prometheus judges the rest.
Gate ReadGate(std::string_view text, std::string& problem);

}  // namespace rocegw::migration
