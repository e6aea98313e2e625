// SPDX-License-Identifier: Apache-2.0
#include "controlplane/upgrades/upgrade_rules.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "gateway/base/foreign_text.h"

namespace rocegw::upgrades {
namespace {

using admin::v1::Upgrade;
using admin::v1::UpgradedGateway;
using admin::v1::UpgradeSpec;

constexpr uint32_t kUsualSoak = 10;
constexpr uint32_t kUsualLostAfter = 300;
constexpr uint32_t kUsualTimeLimit = 60;
// The agent reports the end of its time by itself, and may be connected to another controller.
constexpr int64_t kReportMargin = 15;
// A gateway that is not connected at the end of its wave is waited for, since its agent may just
// have missed it during the replacement.
constexpr int64_t kReconnectsWithin = 30;
constexpr size_t kLongestText = 300;

std::string Short(const std::string& text) { return ForeignText(text.substr(0, kLongestText)); }

std::string VersionText(const types::v1::GatewayStatus& status) {
  return Short(status.version() +
               (status.revision().empty() ? "" : " (" + status.revision() + ")"));
}

bool HasEnded(UpgradedGateway::State state) {
  return state != UpgradedGateway::WAITING && state != UpgradedGateway::REPLACING;
}

bool HasFailed(UpgradedGateway::State state) {
  return state == UpgradedGateway::REFUSED || state == UpgradedGateway::FAILED ||
         state == UpgradedGateway::LOST;
}

// Reads "3" or "10%" as a number of gateways.
std::optional<size_t> ReadSize(std::string text, size_t all) {
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  if (!percent) return std::min(number, all);
  if (number > 100) return std::nullopt;
  return std::max<size_t>((all * number + 99) / 100, 1);
}

// Changes of one upgrade during one step.
class Changer {
 public:
  Changer(Upgrade& upgrade, int64_t now, Step& step) : upgrade_(upgrade), now_(now), step_(step) {}

  void SetState(Upgrade::State state, const std::string& reason) {
    if (upgrade_.state() == state && upgrade_.reason() == reason) return;
    step_.changes.push_back(
        {"upgrade", Upgrade::State_Name(upgrade_.state()), Upgrade::State_Name(state), reason});
    upgrade_.set_state(state);
    upgrade_.set_reason(reason);
    upgrade_.mutable_since()->set_seconds(now_);
  }
  void SetState(int index, UpgradedGateway::State state, const std::string& reason,
                const std::string& text) {
    UpgradedGateway& gateway = *upgrade_.mutable_gateways(index);
    step_.gateways.insert(index);
    step_.changes.push_back({gateway.name(), UpgradedGateway::State_Name(gateway.state()),
                             UpgradedGateway::State_Name(state),
                             text.empty() ? reason : reason + ": " + text});
    gateway.set_state(state);
    gateway.set_reason(reason);
    gateway.set_text(text);
    gateway.mutable_since()->set_seconds(now_);
    if (state != UpgradedGateway::REPLACING) gateway.clear_deadline();
    Count();
  }
  void BeginWave(uint32_t wave) {
    step_.head = true;
    upgrade_.set_wave(wave);
    upgrade_.mutable_wave_time()->set_seconds(now_);
    upgrade_.clear_soak_time();
  }
  void BeginSoak() {
    step_.head = true;
    upgrade_.mutable_soak_time()->set_seconds(now_);
  }
  void Count() {
    upgrade_.clear_counts();
    for (const UpgradedGateway& gateway : upgrade_.gateways())
      ++(*upgrade_.mutable_counts())[UpgradedGateway::State_Name(gateway.state())];
  }

 private:
  Upgrade& upgrade_;
  const int64_t now_;
  Step& step_;
};

uint32_t CountOf(const Upgrade& upgrade, UpgradedGateway::State state) {
  const auto at = upgrade.counts().find(UpgradedGateway::State_Name(state));
  return at == upgrade.counts().end() ? 0 : at->second;
}

uint32_t Failures(const Upgrade& upgrade) {
  return CountOf(upgrade, UpgradedGateway::REFUSED) + CountOf(upgrade, UpgradedGateway::FAILED) +
         CountOf(upgrade, UpgradedGateway::LOST);
}

// Pauses a running upgrade that has more failures than it may have.
void PauseAtFailure(int index, Upgrade& upgrade, Changer& changer) {
  const uint32_t accepted = std::max(upgrade.spec().max_failures(), upgrade.accepted_failures());
  if (upgrade.state() != Upgrade::RUNNING || Failures(upgrade) <= accepted) return;
  const UpgradedGateway& gateway = upgrade.gateways(index);
  changer.SetState(Upgrade::PAUSED, gateway.name() + " " +
                                        UpgradedGateway::State_Name(gateway.state()) + ": " +
                                        gateway.reason());
}

void Fail(int index, UpgradedGateway::State state, const std::string& reason,
          const std::string& text, Upgrade& upgrade, Changer& changer) {
  changer.SetState(index, state, reason, text);
  PauseAtFailure(index, upgrade, changer);
}

void MissDeadlines(const Times& times, Upgrade& upgrade, Changer& changer) {
  // A controller that has just taken over asks the agent before it gives up: the agent may have
  // replaced the gateway while no controller ran.
  const int64_t asked_until =
      times.driven_since + int64_t{upgrade.spec().time_limit_seconds()} + kReportMargin;
  for (int i = 0; i < upgrade.gateways_size(); ++i) {
    UpgradedGateway& gateway = *upgrade.mutable_gateways(i);
    if (gateway.state() != UpgradedGateway::REPLACING ||
        times.now < std::max(gateway.deadline().seconds(), asked_until))
      continue;
    gateway.set_result_unknown(true);
    Fail(i, UpgradedGateway::FAILED, "deadline", "its agent has not reported in time", upgrade,
         changer);
  }
}

void SkipAndLose(const Hosts& hosts, int64_t now, Upgrade& upgrade, Changer& changer) {
  for (int i = 0; i < upgrade.gateways_size(); ++i) {
    const UpgradedGateway& gateway = upgrade.gateways(i);
    if (gateway.state() != UpgradedGateway::WAITING || gateway.wave() > upgrade.wave()) continue;
    const HostState host = hosts(gateway.name());
    const int64_t away_since = std::max(upgrade.wave_time().seconds(), host.away_since);
    const bool late = now >= away_since + int64_t{upgrade.spec().lost_after_seconds()};
    if (late && (!host.connected || !host.answers)) {
      Fail(i, UpgradedGateway::LOST, host.connected ? "no_answer" : "not_connected", {}, upgrade,
           changer);
    } else if (host.connected && !upgrade.spec().version().empty() &&
               host.version == upgrade.spec().version()) {
      changer.SetState(i, UpgradedGateway::SKIPPED, "version", "it has version " + host.version);
    }
  }
}

bool IsWaveOver(const Upgrade& upgrade) {
  return std::ranges::all_of(upgrade.gateways(), [&](const UpgradedGateway& gateway) {
    return gateway.wave() > upgrade.wave() || HasEnded(gateway.state());
  });
}

std::string ResultText(const Upgrade& upgrade) {
  std::string text;
  for (const auto state :
       {UpgradedGateway::REFUSED, UpgradedGateway::FAILED, UpgradedGateway::LOST}) {
    const uint32_t count = CountOf(upgrade, state);
    if (count == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " +
            UpgradedGateway::State_Name(state);
  }
  return text;
}

void EndWave(const Hosts& hosts, int64_t now, Upgrade& upgrade, Changer& changer) {
  if (!IsWaveOver(upgrade)) return;
  if (!upgrade.has_soak_time()) changer.BeginSoak();
  const int64_t end = upgrade.soak_time().seconds() + int64_t{upgrade.spec().soak_seconds()};
  if (now < end) return;
  for (int i = 0; i < upgrade.gateways_size(); ++i) {
    const UpgradedGateway& gateway = upgrade.gateways(i);
    if (gateway.state() != UpgradedGateway::REPLACED || gateway.wave() != upgrade.wave()) continue;
    const HostState host = hosts(gateway.name());
    if (host.connected) continue;
    if (now < std::max(end, host.away_since) + kReconnectsWithin) return;
    Fail(i, UpgradedGateway::FAILED, "disconnected", "it is not connected after its wave", upgrade,
         changer);
  }
  if (upgrade.state() != Upgrade::RUNNING) return;
  if (upgrade.wave() >= upgrade.waves())
    return changer.SetState(Upgrade::DONE, ResultText(upgrade));
  const uint32_t over = upgrade.wave();
  changer.BeginWave(over + 1);
  if (upgrade.spec().pause_after_waves()) {
    changer.SetState(Upgrade::PAUSED, "wave " + std::to_string(over) + " of " +
                                          std::to_string(upgrade.waves()) + " is over");
  }
}

// Returns what is wrong with a gateway that was replaced, as a word and a text.
std::pair<std::string, std::string> Judge(const UpgradeSpec& spec, const UpgradedGateway& gateway,
                                          const fleet::v1::ReplacementReport& report) {
  const types::v1::GatewayStatus& after = report.after();
  if (report.has_after() && after.take_overs().count() <= gateway.take_overs()) {
    return {"not_replaced", "it has counted " + std::to_string(after.take_overs().count()) +
                                " take-overs, and " + std::to_string(gateway.take_overs()) +
                                " before the order"};
  }
  if (!after.ready()) return {"not_ready", Short(after.not_ready_reason())};
  if (!spec.version().empty() && after.version() != spec.version()) {
    return {"version", "it has version " + Short(after.version()) + ", not " + spec.version() +
                           ": is the package installed?"};
  }
  // The report of a take-over whose answer was lost does not know what went over.
  const bool known = report.has_handed_over();
  const uint64_t before = known ? report.handed_over().sessions() : gateway.sessions_before();
  if (!spec.sessions_may_end() && after.totals().sessions() < before) {
    return {"sessions", std::to_string(after.totals().sessions()) + " of " +
                            std::to_string(before) + " sessions are there afterwards" +
                            (known ? ""
                                   : "; it had those before the order, and it is not known "
                                     "how many went over")};
  }
  return {};
}

}  // namespace

bool HasEnded(const Upgrade& upgrade) {
  return upgrade.state() == Upgrade::DONE || upgrade.state() == Upgrade::ABORTED;
}

std::string Plan(const std::vector<std::string>& gateways, int64_t now, Upgrade& upgrade) {
  UpgradeSpec& spec = *upgrade.mutable_spec();
  if (gateways.empty()) return "there is no such gateway";
  if (gateways.size() > kMostGateways)
    return "more than " + std::to_string(kMostGateways) + " gateways";
  if (spec.waves().empty()) {
    for (const char* const size : {"1", "10%", "50%"}) spec.add_waves(size);
  }
  std::vector<size_t> sizes;
  for (const std::string& text : spec.waves()) {
    const auto size = ReadSize(text, gateways.size());
    if (!size.has_value()) return "'" + text + "' is no size of a wave: a number, or 10%";
    sizes.push_back(*size);
  }
  if (spec.max_unavailable() == 0) spec.set_max_unavailable(1);
  if (!spec.has_soak_seconds()) spec.set_soak_seconds(kUsualSoak);
  if (spec.lost_after_seconds() == 0) spec.set_lost_after_seconds(kUsualLostAfter);
  if (spec.time_limit_seconds() == 0) spec.set_time_limit_seconds(kUsualTimeLimit);
  uint32_t wave = 0;
  size_t left = 0;
  for (const std::string& name : gateways) {
    if (left == 0) left = sizes[std::min<size_t>(wave++, sizes.size() - 1)];
    --left;
    UpgradedGateway& gateway = *upgrade.add_gateways();
    gateway.set_name(name);
    gateway.set_wave(wave);
    gateway.set_state(UpgradedGateway::WAITING);
    gateway.mutable_since()->set_seconds(now);
  }
  upgrade.set_state(Upgrade::RUNNING);
  upgrade.mutable_create_time()->set_seconds(now);
  upgrade.mutable_since()->set_seconds(now);
  upgrade.set_waves(wave);
  Step step;
  Changer changer(upgrade, now, step);
  changer.BeginWave(1);
  changer.Count();
  return {};
}

Step Advance(const Hosts& hosts, const Times& times, Upgrade& upgrade) {
  Step step;
  Changer changer(upgrade, times.now, step);
  MissDeadlines(times, upgrade, changer);
  if (upgrade.state() == Upgrade::ABORTING && CountOf(upgrade, UpgradedGateway::REPLACING) == 0)
    changer.SetState(Upgrade::ABORTED, upgrade.reason());
  if (upgrade.state() == Upgrade::RUNNING) SkipAndLose(hosts, times.now, upgrade, changer);
  if (upgrade.state() == Upgrade::RUNNING) EndWave(hosts, times.now, upgrade, changer);
  return step;
}

std::vector<int> Next(const Hosts& hosts, const Upgrade& upgrade) {
  std::vector<int> next;
  if (upgrade.state() != Upgrade::RUNNING) return next;
  const uint32_t busy = CountOf(upgrade, UpgradedGateway::REPLACING);
  for (int i = 0; i < upgrade.gateways_size(); ++i) {
    if (busy + next.size() >= upgrade.spec().max_unavailable()) break;
    const UpgradedGateway& gateway = upgrade.gateways(i);
    if (gateway.state() == UpgradedGateway::WAITING && gateway.wave() <= upgrade.wave() &&
        hosts(gateway.name()).connected)
      next.push_back(i);
  }
  return next;
}

Step BeginReplacement(int index, const types::v1::GatewayStatus& status, int64_t now,
                      Upgrade& upgrade) {
  Step step;
  UpgradedGateway& gateway = *upgrade.mutable_gateways(index);
  const uint32_t busy = CountOf(upgrade, UpgradedGateway::REPLACING);
  // A person or a failure may have paused the upgrade since the gateway was asked.
  if (upgrade.state() != Upgrade::RUNNING || gateway.state() != UpgradedGateway::WAITING ||
      gateway.wave() > upgrade.wave() || busy >= upgrade.spec().max_unavailable())
    return step;
  Changer changer(upgrade, now, step);
  changer.SetState(index, UpgradedGateway::REPLACING, {}, {});
  const bool was_carried_out =
      gateway.result_unknown() && status.take_overs().count() == gateway.take_overs() + 1;
  if (!was_carried_out) {
    gateway.set_version_before(VersionText(status));
    gateway.set_take_overs(status.take_overs().count());
    gateway.set_sessions_before(status.totals().sessions());
  }
  gateway.clear_result_unknown();
  gateway.clear_version_after();
  gateway.clear_blackout();
  gateway.clear_handed_over();
  gateway.mutable_deadline()->set_seconds(now + upgrade.spec().time_limit_seconds() +
                                          kReportMargin);
  return step;
}

Step EndReplacement(int index, const fleet::v1::ReplacementReport& report, int64_t now,
                    Upgrade& upgrade) {
  Step step;
  UpgradedGateway& gateway = *upgrade.mutable_gateways(index);
  if (gateway.state() != UpgradedGateway::REPLACING) return step;
  Changer changer(upgrade, now, step);
  if (report.has_after() && !report.refused())
    gateway.set_version_after(VersionText(report.after()));
  if (!report.reason().empty()) {
    // An order without an answer may still be carried out after the agent's time limit.
    gateway.set_result_unknown(report.reason() == "deadline" && !report.refused() &&
                               report.after().take_overs().count() <= gateway.take_overs());
    Fail(index, report.refused() ? UpgradedGateway::REFUSED : UpgradedGateway::FAILED,
         Short(report.reason()), Short(report.text()), upgrade, changer);
    return step;
  }
  *gateway.mutable_blackout() = report.after().take_overs().last_blackout();
  if (report.has_handed_over()) *gateway.mutable_handed_over() = report.handed_over();
  const auto [reason, text] = Judge(upgrade.spec(), gateway, report);
  if (reason.empty()) {
    changer.SetState(index, UpgradedGateway::REPLACED, {}, {});
  } else {
    Fail(index, UpgradedGateway::FAILED, reason, text, upgrade, changer);
  }
  return step;
}

Step FailReplacement(int index, const std::string& text, int64_t now, Upgrade& upgrade) {
  Step step;
  if (upgrade.gateways(index).state() != UpgradedGateway::REPLACING) return step;
  Changer changer(upgrade, now, step);
  Fail(index, UpgradedGateway::FAILED, "agent", Short(text), upgrade, changer);
  return step;
}

std::string Give(admin::v1::UpgradeVerb verb, const std::string& principal, int64_t now,
                 Upgrade& upgrade, Step& step) {
  if (HasEnded(upgrade)) return "it has ended";
  if (upgrade.state() == Upgrade::ABORTING) return "it ends";
  Changer changer(upgrade, now, step);
  const std::string who = "by " + principal;
  switch (verb) {
    case admin::v1::PAUSE_UPGRADE:
      if (upgrade.state() == Upgrade::PAUSED) return "it is paused already";
      changer.SetState(Upgrade::PAUSED, who);
      return {};
    case admin::v1::RESUME_UPGRADE:
      if (upgrade.state() != Upgrade::PAUSED) return "it is not paused";
      break;
    case admin::v1::RETRY_UPGRADE:
      for (int i = 0; i < upgrade.gateways_size(); ++i) {
        const UpgradedGateway::State state = upgrade.gateways(i).state();
        if (HasFailed(state)) changer.SetState(i, UpgradedGateway::WAITING, {}, {});
      }
      if (step.gateways.empty()) return "it has no failed or lost gateway";
      break;
    case admin::v1::ABORT_UPGRADE:
      changer.SetState(Upgrade::ABORTING, who);
      return {};
    default:
      return "this order is not known";
  }
  upgrade.set_accepted_failures(Failures(upgrade));
  // Gateways that were away during the pause get their time again.
  changer.BeginWave(upgrade.wave());
  changer.SetState(Upgrade::RUNNING, {});
  return {};
}

}  // namespace rocegw::upgrades
