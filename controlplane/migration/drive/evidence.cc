// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/drive/evidence.h"

#include "gateway/base/foreign_text.h"

namespace rocegw::migration {
namespace {

constexpr size_t kLongestReason = 512;

Judgement Missing(const char* fact) {
  return {Outcome::kInconclusive, std::string("the adapter did not report ") + fact};
}

Judgement JudgeDrained(const Evidence& evidence) {
  if (!evidence.outstanding.has_value()) return Missing("the number of outstanding I/Os");
  if (*evidence.outstanding == 0) return {};
  return {Outcome::kNotYet, std::to_string(*evidence.outstanding) + " I/Os are outstanding"};
}

// Both witnesses have to name the transport.
Judgement JudgeTransport(const Evidence& evidence, Transport expected) {
  if (!evidence.stated.has_value()) return Missing("which transport the application uses");
  if (!evidence.counted.has_value()) return Missing("which transport the byte counters show");
  const std::string word(WordOf(expected));
  if (*evidence.stated != expected) {
    return {Outcome::kFailed,
            "the application uses " + std::string(WordOf(*evidence.stated)) + ", not " + word};
  }
  if (*evidence.counted != expected) {
    return {Outcome::kFailed, "the application says " + word + ", but its bytes go over " +
                                  std::string(WordOf(*evidence.counted))};
  }
  return {};
}

Judgement JudgeJournal(const Evidence& evidence) {
  if (!evidence.journal_intact.has_value()) return Missing("the canary workload's journal");
  if (*evidence.journal_intact) return {};
  return {Outcome::kFailed, "the canary workload read other data than it wrote"};
}

Judgement JudgeConfig(const Evidence& evidence, const std::string& expected, const char* which) {
  if (evidence.config_hash.empty()) return Missing("the configuration's hash");
  if (evidence.config_hash == expected) return {};
  return {Outcome::kFailed, std::string("the configuration is not the ") + which + " one"};
}

Judgement First(Judgement a, Judgement b) { return a.outcome != Outcome::kDone ? a : b; }

Judgement JudgeVersion(const Plan& plan, const Evidence& evidence) {
  const std::string& version = evidence.gateway_version;
  if (version.empty() || plan.oldest_version.empty() || version == plan.oldest_version ||
      version == plan.newest_version)
    return {};
  return {Outcome::kFailed, "the gateway has version " + ForeignText(version.substr(0, 64)) +
                                ", planned with " + plan.oldest_version + " to " +
                                plan.newest_version};
}

}  // namespace

Judgement Judge(const Plan& plan, uint32_t node, const NodeRecord& record, Step step,
                const StepResult& result) {
  if (result.outcome != Outcome::kDone)
    return {result.outcome, ForeignText(result.text.substr(0, kLongestReason))};
  const Evidence& evidence = result.evidence;
  // The way back is open for each version.
  if (record.activity == Activity::kForward) {
    const Judgement version = JudgeVersion(plan, evidence);
    if (version.outcome != Outcome::kDone) return version;
    // Broken data turn the node back whichever step finds them.
    if (evidence.journal_intact == false) return JudgeJournal(evidence);
  }
  switch (step) {
    case Step::kHealth:
      return evidence.gateway_version.empty() && !plan.oldest_version.empty()
                 ? Missing("the gateway's version")
                 : Judgement();
    case Step::kBackup:
      return evidence.config_hash.empty() ? Missing("the configuration's hash") : Judgement();
    case Step::kSwitch:
      return evidence.config_hash.empty() ? Missing("the configuration's hash") : Judgement();
    case Step::kDrain:
    case Step::kDrainNew:
      return JudgeDrained(evidence);
    case Step::kVerify:
      return First(First(JudgeTransport(evidence, plan.target),
                         JudgeConfig(evidence, record.switched_hash, "switched")),
                   JudgeJournal(evidence));
    case Step::kRestore:
      return JudgeConfig(evidence, record.backup_hash, "backed-up");
    case Step::kVerifyOld:
      return First(First(JudgeTransport(evidence, plan.nodes[node].from),
                         JudgeConfig(evidence, record.backup_hash, "backed-up")),
                   JudgeJournal(evidence));
    case Step::kUncordon: {
      // The last step of a restart: configuration or path may have changed since they were
      // verified.
      const bool back = record.activity == Activity::kUndo;
      const Transport expected = back ? plan.nodes[node].from : plan.target;
      const bool witnessed = evidence.stated.has_value() && evidence.counted.has_value();
      return First(witnessed ? JudgeTransport(evidence, expected) : Judgement(),
                   back ? JudgeConfig(evidence, record.backup_hash, "backed-up")
                        : JudgeConfig(evidence, record.switched_hash, "switched"));
    }
    case Step::kRemoveOld:
      if (!evidence.clients_on_old.has_value()) return Missing("who still uses the old path");
      if (*evidence.clients_on_old == 0) return {};
      return {Outcome::kNotYet,
              std::to_string(*evidence.clients_on_old) + " clients still use the old path"};
    default:
      return {};
  }
}

}  // namespace rocegw::migration
