// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/aims.h"

#include <cstdio>

namespace rocegw::bench {
namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

// What is no number is not reached.
void Aims::AtMost(const std::string& what, double value, double limit, const std::string& unit) {
  Print(value <= limit, what, value, unit, "at most " + Number(limit));
}

void Aims::AtLeast(const std::string& what, double value, double limit, const std::string& unit) {
  Print(value >= limit, what, value, unit, "at least " + Number(limit));
}

void Aims::Print(bool met, const std::string& what, double value, const std::string& unit,
                 const std::string& aim) {
  missed_ += met ? 0 : 1;
  std::printf("%-7s %s %s%s (aim: %s)\n", met ? "met" : "missed", what.c_str(),
              Number(value).c_str(), unit.empty() ? "" : (" " + unit).c_str(), aim.c_str());
}

}  // namespace rocegw::bench
