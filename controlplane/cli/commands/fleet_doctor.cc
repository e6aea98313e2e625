// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/commands/fleet_doctor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "controlplane/cli/views/object_views.h"
#include "gateway/base/service_advice.h"
#include "proto/rules/finding.h"

namespace rocegw::cli {
namespace {

using gateway::v1::Diagnosis;
using rules::Check;

constexpr char kFleet[] = "fleet";

// Beyond this skew, logs of hosts are hard to compare; certificates are valid to the second.
constexpr int64_t kNoticeableSkewNs = 1'000'000'000;
constexpr int64_t kHarmfulSkewNs = 60'000'000'000;

std::string Milliseconds(int64_t ns) { return std::to_string(ns / 1'000'000) + " ms"; }

// Returns "0.3.1" of "0.3.1 (79db21a73e23)".
std::string Release(const std::string& version) { return version.substr(0, version.find(' ')); }

// Returns major and minor number of "0.3.1"; nothing: not a version.
std::optional<std::pair<int, int>> NumbersOf(const std::string& version) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return std::nullopt;
  return std::pair(major, minor);
}

// Returns "0.1.0, 0.2.0 (3)": each version with its number of gateways.
std::string Counted(const std::map<std::string, int>& versions) {
  std::string text;
  for (const auto& [version, count] : versions) {
    text += (text.empty() ? "" : ", ") + version + " (" + std::to_string(count) + ")";
  }
  return text;
}

bool WorkTogether(const std::set<std::string>& versions) {
  std::optional<std::pair<int, int>> least;
  std::optional<std::pair<int, int>> most;
  for (const std::string& version : versions) {
    const auto numbers = NumbersOf(version);
    if (!numbers.has_value()) continue;
    least = std::min(least.value_or(*numbers), *numbers);
    most = std::max(most.value_or(*numbers), *numbers);
  }
  if (!least.has_value()) return true;
  return least->first == most->first && most->second - least->second <= 1;
}

// Uses the agent's own report if it has one; else the controller's data.
std::optional<Diagnosis> CertificateEnded(const GatewayReading& reading, int64_t now) {
  const int64_t ends = reading.gateway.status().certificate_expire_time().seconds();
  if (ends == 0 || ends > now) return std::nullopt;
  for (const Diagnosis& diagnosis : reading.diagnosis.diagnoses())
    if (diagnosis.check() == "agent_certificate") return std::nullopt;
  return Check("agent_certificate", reading.gateway.name())
      .Fail("ended " + AgeText(now - ends) + " ago", "the agent cannot connect any more",
            "rocegwctl join-token --gateway " + ShortName(reading.gateway.name()) +
                ", then rocegw-agent --join on the host");
}

}  // namespace

ClockReading ReadClock(int64_t asked_ns, int64_t answered_ns, int64_t theirs_ns) {
  const int64_t way = answered_ns - asked_ns;
  return {theirs_ns - (asked_ns + way / 2), way / 2};
}

Diagnosis CheckState(const GatewayReading& reading, int64_t now) {
  const types::v1::Gateway& gateway = reading.gateway;
  const std::string word = GatewayWord(gateway);
  const std::string name = ShortName(gateway.name());
  Check check("state", gateway.name());
  if (word == "disconnected") {
    return std::move(check).Fail(
        "not connected: " + GatewayReason(gateway, now),
        "it runs what it has, and learns of no change",
        "on the host: " + HowToSeeState("rocegw-agent") + "; " + HowToReadLog("rocegw-agent"));
  }
  if (word == "no-daemon") {
    return std::move(check).Fail(
        GatewayReason(gateway, now), "no program can attach there",
        "on the host: " + HowToSeeState("rocegwd") + "; " + HowToReadLog("rocegwd"));
  }
  if (!reading.problem.empty()) {
    return std::move(check).Fail("it does not answer: " + reading.problem,
                                 "nothing can be said about its host",
                                 "rocegwctl --local doctor on the host");
  }
  if (word == "unadopted") {
    return std::move(check).Warn(
        "runs the configuration of another store", "what is changed here does not reach it",
        "compare with rocegwctl status " + name + ", then rocegwctl fleet adopt " + name);
  }
  if (word == "rejecting") {
    return std::move(check).Fail(GatewayReason(gateway, now),
                                 "what it had before stays in force for these objects",
                                 "rocegwctl explain -g " + name);
  }
  if (word == "behind") {
    return std::move(check).Warn(GatewayReason(gateway, now), "it does not run what is wanted yet",
                                 "rocegwctl status --wait; when it stays so, the agent's log");
  }
  return std::move(check).Ok(word == "ok" ? "connected and in sync" : word);
}

Diagnosis CheckHostClock(const GatewayReading& reading, const ClockReading& controller) {
  Check check("clock_skew", reading.gateway.name());
  const int64_t skew = reading.clock.ahead_ns - controller.ahead_ns;
  const int64_t uncertain = reading.clock.uncertain_ns + controller.uncertain_ns;
  // A skew within the uncertainty is not reported.
  const int64_t least = std::max<int64_t>(std::abs(skew) - uncertain, 0);
  if (least <= kNoticeableSkewNs)
    return std::move(check).Ok("at most " + Milliseconds(std::abs(skew) + uncertain) +
                               " from the controller's");
  const std::string found = Milliseconds(std::abs(skew)) + (skew > 0 ? " ahead of" : " behind") +
                            " the controller's clock";
  const char* const remedy = "start chrony or systemd-timesyncd on the host and the controller";
  if (least > kHarmfulSkewNs) {
    return std::move(check).Fail(found, "new certificates may not be valid yet there, or end early",
                                 remedy);
  }
  return std::move(check).Warn(found, "logs and captures of the hosts cannot be compared", remedy);
}

Diagnosis CheckVersions(const FleetFacts& facts) {
  std::map<std::string, int> agents;
  std::map<std::string, int> gateways;
  std::set<std::string> all = {facts.controller_version};
  for (const GatewayReading& reading : facts.gateways) {
    // Versions of disconnected gateways are unknown.
    if (!reading.gateway.status().connected()) continue;
    const std::string agent = Release(reading.gateway.status().agent_version());
    const std::string gateway = Release(reading.gateway.status().gateway_version());
    if (!agent.empty()) ++agents[agent];
    if (!gateway.empty()) ++gateways[gateway];
    all.insert(agent);
    all.insert(gateway);
  }
  all.erase("");
  Check check("versions", kFleet);
  if (all.size() <= 1)
    return std::move(check).Ok(all.empty() ? "not known" : "all run " + *all.begin());
  const std::string found = "controller " + facts.controller_version + "; agents " +
                            Counted(agents) + "; gateways " + Counted(gateways);
  const char* const remedy = "upgrade controllers, then agents, then gateways, each after a drain";
  if (!WorkTogether(all)) {
    return std::move(check).Fail(found, "only versions N and N-1 are made to work together",
                                 remedy);
  }
  return std::move(check).Warn(found, "what only the newer ones know is not used everywhere",
                               remedy);
}

Diagnosis CheckMtus(const FleetFacts& facts) {
  std::map<uint32_t, std::vector<std::string>> by_mtu;
  for (const GatewayReading& reading : facts.gateways)
    for (const uint32_t mtu : reading.mtus)
      by_mtu[mtu].push_back(ShortName(reading.gateway.name()));
  Check check("link_mtus", kFleet);
  if (by_mtu.empty()) return std::move(check).Ok("no gateway told its own");
  if (by_mtu.size() == 1)
    return std::move(check).Ok("all links have an MTU of " + std::to_string(by_mtu.begin()->first));
  std::string found;
  for (const auto& [mtu, names] : by_mtu) {
    found += (found.empty() ? "" : "; ") + std::to_string(mtu) + ": " + names.front();
    if (names.size() > 1) found += " and " + std::to_string(names.size() - 1) + " more";
  }
  return std::move(check).Warn(
      found, "programs that do not let rdma_cm agree on a path MTU lose their full packets",
      "ip link set INTERFACE mtu " + std::to_string(by_mtu.rbegin()->first) +
          " on the others, if the switches allow it");
}

std::vector<Diagnosis> CheckPools(const std::vector<types::v1::Pool>& pools) {
  std::vector<Diagnosis> found;
  for (const types::v1::Pool& pool : pools) {
    const types::v1::PoolStatus& status = pool.status();
    if (status.gateways_rejecting() != 0) {
      std::string text = "rejected by " + std::to_string(status.gateways_rejecting()) + " of " +
                         std::to_string(status.gateways_selected()) + " gateways";
      if (status.rejections_size() != 0) {
        const auto& first = status.rejections(0);
        text += ", " + ShortName(first.gateway()) + ": " + first.reason() + ": " + first.message();
      }
      found.push_back(Check("pools", pool.name())
                          .Fail(text, "these gateways keep its old version, or do not have it",
                                "rocegwctl describe pool " + ShortName(pool.name())));
    } else if (status.gateways_applied() < status.gateways_selected()) {
      found.push_back(Check("pools", pool.name())
                          .Warn("runs on " + std::to_string(status.gateways_applied()) + " of " +
                                    std::to_string(status.gateways_selected()) + " gateways",
                                "on the others its programs find an old version or no socket",
                                "rocegwctl status"));
    }
  }
  if (found.empty()) {
    found.push_back(
        Check("pools", kFleet).Ok(std::to_string(pools.size()) + " pools run where they should"));
  }
  return found;
}

gateway::v1::DiagnoseResponse ExamineFleet(const FleetFacts& facts) {
  gateway::v1::DiagnoseResponse response;
  for (const GatewayReading& reading : facts.gateways) {
    *response.add_diagnoses() = CheckState(reading, facts.now);
    if (auto ended = CertificateEnded(reading, facts.now))
      *response.add_diagnoses() = std::move(*ended);
    if (!reading.asked || !reading.problem.empty()) continue;
    *response.add_diagnoses() = CheckHostClock(reading, facts.controller_clock);
    response.mutable_diagnoses()->MergeFrom(reading.diagnosis.diagnoses());
  }
  *response.add_diagnoses() = CheckVersions(facts);
  *response.add_diagnoses() = CheckMtus(facts);
  for (Diagnosis& diagnosis : CheckPools(facts.pools))
    *response.add_diagnoses() = std::move(diagnosis);
  rules::SortByWorst(response);
  return response;
}

}  // namespace rocegw::cli
