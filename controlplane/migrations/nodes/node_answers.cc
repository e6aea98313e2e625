// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/nodes/node_answers.h"

#include <utility>

#include "gateway/base/foreign_text.h"

namespace rocegw::migrations {
namespace {

using migration::Evidence;
using migration::Outcome;
using migration::Transport;

constexpr size_t kLongestText = 512;
constexpr size_t kLongestHash = 128;

std::string Short(const std::string& text, size_t most) {
  return ForeignText(text.substr(0, most));
}

// Returns false if the word names no transport; an empty word names none on purpose.
bool ReadTransport(const std::string& word, std::optional<Transport>& to) {
  if (word.empty()) return true;
  to = migration::FromWord<Transport>(word);
  return to.has_value();
}

}  // namespace

migration::StepResult ResultOf(const Arrived& arrived) {
  migration::StepResult result{.node = arrived.node, .command = arrived.number};
  if (arrived.answer.code != 0) {
    result.outcome = Outcome::kFailed;
    result.text = Short(arrived.answer.message, kLongestText);
    return result;
  }
  const fleet::v1::MigrationReport& report = arrived.answer.report;
  const auto outcome = migration::FromWord<Outcome>(report.outcome());
  Evidence& evidence = result.evidence;
  if (!outcome.has_value() || !ReadTransport(report.stated(), evidence.stated) ||
      !ReadTransport(report.counted(), evidence.counted)) {
    result.outcome = Outcome::kUnparsable;
    result.text = "the agent's answer is not understood";
    return result;
  }
  result.outcome = *outcome;
  result.text = Short(report.text(), kLongestText);
  if (report.has_outstanding()) evidence.outstanding = report.outstanding();
  if (report.has_journal_intact()) evidence.journal_intact = report.journal_intact();
  if (report.has_clients_on_old()) evidence.clients_on_old = report.clients_on_old();
  evidence.config_hash = Short(report.config_hash(), kLongestHash);
  evidence.gateway_version = Short(report.gateway_version(), kLongestHash);
  evidence.output_digest = Short(report.output_digest(), kLongestHash);
  return result;
}

}  // namespace rocegw::migrations
