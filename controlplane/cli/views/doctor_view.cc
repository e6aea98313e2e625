// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/doctor_view.h"

#include <algorithm>
#include <map>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/views/wrapped.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

using gateway::v1::DiagnoseResponse;
using gateway::v1::Diagnosis;

// Limit of shown findings of one check with one severity; a fleet has the same problem on many
// hosts.
constexpr int kMostOfOneCheck = 10;

const char* WordOf(gateway::v1::Severity severity) {
  switch (severity) {
    case gateway::v1::FAIL:
      return "fail";
    case gateway::v1::WARN:
      return "warn";
    case gateway::v1::OK:
      return "ok";
    default:
      return "unknown";
  }
}

std::string TextOf(const Diagnosis& diagnosis) {
  std::string text = std::string(WordOf(diagnosis.severity())) + "  " +
                     ForeignText(ShortName(diagnosis.object()) + "  " + diagnosis.check()) + "\n" +
                     Wrapped(diagnosis.found(), "    ");
  if (!diagnosis.reason().empty()) text += Wrapped(diagnosis.reason(), "    ");
  // On one line, so that it can be copied.
  if (!diagnosis.remedy().empty()) text += "    remedy: " + ForeignText(diagnosis.remedy()) + "\n";
  return text;
}

}  // namespace

std::string DiagnosisView(const DiagnoseResponse& diagnosis, bool wide) {
  std::string text;
  std::map<gateway::v1::Severity, int> sums;
  std::map<std::pair<gateway::v1::Severity, std::string>, int> shown;
  for (const Diagnosis& one : diagnosis.diagnoses()) {
    ++sums[one.severity()];
    if (one.severity() == gateway::v1::OK && !wide) continue;
    if (++shown[{one.severity(), one.check()}] <= kMostOfOneCheck || wide) text += TextOf(one);
  }
  for (const auto& [key, count] : shown) {
    if (count > kMostOfOneCheck && !wide)
      text += "... and " + std::to_string(count - kMostOfOneCheck) + " more of " +
              ForeignText(key.second) + " (-o wide)\n";
  }
  if (!text.empty()) text += "\n";
  text += std::to_string(sums[gateway::v1::FAIL]) + " fail, " +
          std::to_string(sums[gateway::v1::WARN]) + " warn, " +
          std::to_string(sums[gateway::v1::OK]) + " ok";
  return text + (wide || sums[gateway::v1::OK] == 0 ? "\n" : " (-o wide shows these)\n");
}

int WorstOf(const DiagnoseResponse& diagnosis) {
  int worst = gateway::v1::OK;
  for (const Diagnosis& one : diagnosis.diagnoses()) worst = std::max<int>(worst, one.severity());
  if (worst >= gateway::v1::FAIL) return kConditionFalse;
  return worst == gateway::v1::WARN ? kWarned : kOk;
}

}  // namespace rocegw::cli
