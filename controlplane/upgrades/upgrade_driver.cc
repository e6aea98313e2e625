// SPDX-License-Identifier: Apache-2.0
#include "controlplane/upgrades/upgrade_driver.h"

#include <google/protobuf/util/time_util.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "controlplane/api/calls/api_error.h"
#include "controlplane/model/timestamp.h"
#include "controlplane/upgrades/upgrade_rules.h"

namespace rocegw::upgrades {
namespace {

using admin::v1::Upgrade;
using admin::v1::UpgradedGateway;
using google::protobuf::util::TimeUtil;
using model::SecondsNow;

// Interval of looks at the store, at deadlines and at the hosts.
constexpr std::chrono::milliseconds kPass(500);
constexpr int64_t kRepeatAfter = 1;
constexpr std::chrono::seconds kLookLimit(5);
constexpr int64_t kRecordEvery = 2;

}  // namespace

UpgradeDriver::UpgradeDriver(store::Store& store, HostAccess& hosts, UpgradeBoard& board,
                             std::string candidate)
    : store_(store),
      hosts_(hosts),
      board_(board),
      who_(candidate),
      records_(store, candidate),
      election_(store, {.key = "election/upgrades", .candidate = std::move(candidate)},
                [inbox = inbox_](const auto&) { inbox->Wake(); }),
      thread_([this] { Run(); }) {}

UpgradeDriver::~UpgradeDriver() {
  stopping_ = true;
  inbox_->Wake();
  thread_.join();
}

void UpgradeDriver::Run() {
  while (!stopping_) {
    inbox_->Await(kPass);
    Pass();
    Post();
  }
  Forget();
}

void UpgradeDriver::Post() {
  if (stored_.has_value()) {
    newest_ = stored_->upgrade;
    newest_->clear_gateways();
  }
  board_.Post({.drives = term_.has_value(), .upgrade = newest_});
}

void UpgradeDriver::Forget() {
  stored_.reset();
  asked_.clear();
  again_at_.clear();
  away_since_.clear();
  inbox_->Clear();
}

void UpgradeDriver::Pass() {
  const std::optional<store::Term> term = election_.term();
  if (term_ != term) {
    Forget();
    newest_.reset();
    records_.Forget();
    driven_since_ = SecondsNow();
  }
  term_ = term;
  if (!term_.has_value()) return;
  RecordTakeOvers();
  if (!Load()) return;
  // Each answer that is taken is handled: one whose step is not stored is asked for again, and
  // those behind it wait until the upgrade was read again.
  while (stored_.has_value()) {
    const std::optional<Arrived> arrived = inbox_->Take();
    if (!arrived.has_value()) break;
    OnAnswer(*arrived);
  }
  // A step that was not stored is made again from what the store has.
  if (!stored_.has_value()) return;
  if (!Store([this](Upgrade& upgrade) {
        return Advance([this](const std::string& name) { return StateOf(name); },
                       {.now = SecondsNow(), .driven_since = driven_since_}, upgrade);
      }))
    return;
  AskDue();
}

void UpgradeDriver::RecordTakeOvers() {
  if (SecondsNow() < record_at_) return;
  record_at_ = SecondsNow() + kRecordEvery;
  records_.Record(hosts_.TakeOvers(), term_->fence);
}

bool UpgradeDriver::Load() {
  auto active = store_.Range({.range = store::KeyRange::Key(kActiveKey)});
  if (!active.ok()) {
    spdlog::warn("upgrades cannot be read: {}", active.status().text());
    return false;
  }
  if (active->entries.empty()) {
    Forget();
    return false;
  }
  const std::string& id = active->entries[0].value;
  if (stored_.has_value() && stored_->id != id) Forget();
  if (stored_.has_value()) {
    auto head = store_.Range({.range = store::KeyRange::Key(HeadKey(id)), .keys_only = true});
    if (!head.ok()) return false;
    if (!head->entries.empty() && head->entries[0].mod_revision == stored_->revision) return true;
  }
  auto rows = store_.Range({.range = store::KeyRange::Prefix(PrefixOf(id))});
  if (!rows.ok()) return false;
  std::string problem;
  StoredUpgrade read = ReadUpgrade(id, rows->entries, problem);
  if (!problem.empty()) {
    spdlog::error("upgrade {} is not driven: {}", id, problem);
    Forget();
    return false;
  }
  stored_ = std::move(read);
  return true;
}

bool UpgradeDriver::Store(const std::function<Step(Upgrade&)>& change) {
  Upgrade after = stored_->upgrade;
  const Step step = change(after);
  if (step.empty()) return true;
  store::Transaction transaction = StepOf(*stored_, after, step);
  transaction.compares.push_back(term_->fence);
  if (!step.changes.empty()) transaction.then.push_back(AuditOfChanges(stored_->id, who_, step));
  auto written = store_.Txn(std::move(transaction));
  if (!written.ok() || !written->succeeded) {
    // Written by a person or another controller, or maybe written by this one.
    stored_.reset();
    return false;
  }
  for (const Change& each : step.changes) {
    spdlog::info("upgrade {}: {}: {} {}", stored_->id, each.subject, each.after, each.reason);
  }
  stored_->upgrade = std::move(after);
  stored_->revision = written->revision;
  return true;
}

HostState UpgradeDriver::StateOf(const std::string& gateway) {
  HostState state = hosts_.StateOf(gateway);
  state.answers = !again_at_.contains(gateway);
  if (state.connected && state.answers) {
    away_since_.erase(gateway);
  } else {
    state.away_since = away_since_.try_emplace(gateway, SecondsNow()).first->second;
  }
  return state;
}

int UpgradeDriver::IndexOf(const std::string& gateway) const {
  const auto& all = stored_->upgrade.gateways();
  const auto at = std::ranges::find(all, gateway, [](const auto& each) { return each.name(); });
  return at == all.end() ? -1 : static_cast<int>(at - all.begin());
}

void UpgradeDriver::OnAnswer(const Arrived& arrived) {
  const auto known = asked_.find(arrived.gateway);
  if (known == asked_.end() || known->second.number != arrived.number) return;
  const bool replaces = known->second.replaces;
  asked_.erase(known);
  const int index = IndexOf(arrived.gateway);
  if (index < 0) return;
  if (arrived.answer.code != 0 && (!replaces || api::MayBeRepeated(arrived.answer.code))) {
    again_at_[arrived.gateway] = SecondsNow() + kRepeatAfter;
    return;
  }
  again_at_.erase(arrived.gateway);
  if (replaces) return OnReplacement(index, arrived.answer);
  (void)Store([&](Upgrade& upgrade) {
    return BeginReplacement(index, arrived.answer.answer.status(), SecondsNow(), upgrade);
  });
}

void UpgradeDriver::OnReplacement(int index, const HostAnswer& answer) {
  (void)Store([&](Upgrade& upgrade) {
    return answer.code == 0
               ? EndReplacement(index, answer.answer.replacement(), SecondsNow(), upgrade)
               : FailReplacement(index, "the agent does not replace it: " + answer.message,
                                 SecondsNow(), upgrade);
  });
}

void UpgradeDriver::AskDue() {
  const Upgrade& upgrade = stored_->upgrade;
  const auto is_due = [this](const std::string& gateway) {
    const auto again = again_at_.find(gateway);
    return !asked_.contains(gateway) && (again == again_at_.end() || SecondsNow() >= again->second);
  };
  for (const UpgradedGateway& gateway : upgrade.gateways()) {
    if (gateway.state() != UpgradedGateway::REPLACING || !is_due(gateway.name())) continue;
    fleet::v1::TunnelQuestion question;
    fleet::v1::ReplaceGateway& order = *question.mutable_replace_gateway();
    order.set_take_overs(gateway.take_overs());
    *order.mutable_time_limit() = TimeUtil::SecondsToDuration(upgrade.spec().time_limit_seconds());
    Ask(gateway.name(), question, true, std::chrono::seconds(upgrade.spec().time_limit_seconds()));
  }
  const auto hosts = [this](const std::string& name) { return StateOf(name); };
  for (const int index : Next(hosts, upgrade)) {
    const std::string& name = upgrade.gateways(index).name();
    if (!is_due(name)) continue;
    fleet::v1::TunnelQuestion question;
    question.mutable_get_status();
    Ask(name, question, false, kLookLimit);
  }
}

void UpgradeDriver::Ask(const std::string& gateway, const fleet::v1::TunnelQuestion& question,
                        bool replaces, std::chrono::seconds limit) {
  const uint64_t number = ++questions_;
  asked_[gateway] = {.number = number, .replaces = replaces};
  hosts_.Ask(gateway, question, limit, [inbox = inbox_, gateway, number](HostAnswer answer) {
    inbox->Put({.gateway = gateway, .number = number, .answer = std::move(answer)});
  });
}

}  // namespace rocegw::upgrades
