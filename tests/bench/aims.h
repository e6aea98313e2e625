// SPDX-License-Identifier: Apache-2.0
// Comparison of a benchmark's figures with its aims: prints "met" or "missed" for each aim and
// determines the exit status. Single-threaded.
#pragma once

#include <string>

namespace rocegw::bench {

class Aims {
 public:
  // Prints "met     change 0.412 s (aim: at most 1)". `unit` may be empty.
  void AtMost(const std::string& what, double value, double limit, const std::string& unit);
  void AtLeast(const std::string& what, double value, double limit, const std::string& unit);

  // Returns the exit status of the program: 1 if an aim was missed.
  int ExitStatus() const { return missed_ == 0 ? 0 : 1; }

 private:
  void Print(bool met, const std::string& what, double value, const std::string& unit,
             const std::string& aim);

  int missed_ = 0;
};

}  // namespace rocegw::bench
