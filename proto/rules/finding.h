// SPDX-License-Identifier: Apache-2.0
// Findings of checks. Plain values.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "rocegw/gateway/v1/debug.pb.h"

namespace rocegw::rules {

using gateway::v1::Diagnosis;

// Check of one object; each of the three functions ends it.
class Check {
 public:
  Check(const char* name, const std::string& object) {
    diagnosis_.set_check(name);
    diagnosis_.set_object(object);
  }

  Diagnosis Ok(const std::string& found) && {
    return std::move(*this).End(gateway::v1::OK, found, {}, {});
  }
  Diagnosis Warn(const std::string& found, const std::string& reason,
                 const std::string& remedy) && {
    return std::move(*this).End(gateway::v1::WARN, found, reason, remedy);
  }
  Diagnosis Fail(const std::string& found, const std::string& reason,
                 const std::string& remedy) && {
    return std::move(*this).End(gateway::v1::FAIL, found, reason, remedy);
  }

 private:
  Diagnosis End(gateway::v1::Severity severity, const std::string& found, const std::string& reason,
                const std::string& remedy) && {
    diagnosis_.set_severity(severity);
    diagnosis_.set_found(found);
    diagnosis_.set_reason(reason);
    diagnosis_.set_remedy(remedy);
    return std::move(diagnosis_);
  }

  Diagnosis diagnosis_;
};

// Sorts by severity, worst first; otherwise keeps the order.
inline void SortByWorst(gateway::v1::DiagnoseResponse& response) {
  std::stable_sort(
      response.mutable_diagnoses()->begin(), response.mutable_diagnoses()->end(),
      [](const Diagnosis& a, const Diagnosis& b) { return a.severity() > b.severity(); });
}

}  // namespace rocegw::rules
