// SPDX-License-Identifier: Apache-2.0
// Rules of an upgrade of gateways in waves: which gateway is next, what a report means, when a wave
// ends, when the upgrade pauses. Each function changes the upgrade and says what it changed. Pure:
// time, hosts and reports are arguments; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "rocegw/admin/v1/upgrades.pb.h"
#include "rocegw/fleet/v1/node.pb.h"

namespace rocegw::upgrades {

// Gateways of one upgrade.
inline constexpr size_t kMostGateways = 2000;

// Host of a gateway as the controller knows it.
struct HostState {
  bool connected = false;  // its agent is connected and reaches the gateway
  bool answers = true;     // the last question about its status was answered
  std::string version;     // version of the gateway
  // Time since which this controller has found the gateway not connected or without an answer,
  // seconds since 1970; 0: it is there, or was not looked at before.
  int64_t away_since = 0;
};
using Hosts = std::function<HostState(const std::string& gateway)>;

// Changed state, for the audit record.
struct Change {
  std::string subject;  // "upgrade", "gateways/G"
  std::string before;
  std::string after;
  std::string reason;
};

struct Step {
  std::set<int> gateways;  // indices of the changed gateways
  std::vector<Change> changes;
  bool head = false;  // something else changed, too

  bool empty() const { return gateways.empty() && changes.empty() && !head; }
};

// Fills the gateways with their waves, and the defaults of the spec. Returns what is wrong with the
// spec, or an empty text.
std::string Plan(const std::vector<std::string>& gateways, int64_t now,
                 admin::v1::Upgrade& upgrade);

bool HasEnded(const admin::v1::Upgrade& upgrade);

// Seconds since 1970.
struct Times {
  int64_t now = 0;
  // Begin of this controller's term. Before it, answers and connections may have been missed.
  int64_t driven_since = 0;
};

// Does what is due by time: missed deadlines, lost gateways, ends of waves.
Step Advance(const Hosts& hosts, const Times& times, admin::v1::Upgrade& upgrade);

// Returns the gateways that are to be replaced now: connected ones of the current wave, as many as
// may be replaced at the same time.
std::vector<int> Next(const Hosts& hosts, const admin::v1::Upgrade& upgrade);

// Begins the replacement of a gateway; `status`: the gateway's, just read. Store the result before
// the agent is asked. If an earlier order of unknown result was carried out, the number of
// take-overs stays that of the earlier order, so that the agent reports it and replaces nothing.
Step BeginReplacement(int gateway, const types::v1::GatewayStatus& status, int64_t now,
                      admin::v1::Upgrade& upgrade);
// Takes an agent's report on a replacement. Foreign input.
Step EndReplacement(int gateway, const fleet::v1::ReplacementReport& report, int64_t now,
                    admin::v1::Upgrade& upgrade);
// Ends a replacement that the agent does not carry out.
Step FailReplacement(int gateway, const std::string& text, int64_t now,
                     admin::v1::Upgrade& upgrade);

// Carries out a person's order. Returns why not, or an empty text.
std::string Give(admin::v1::UpgradeVerb verb, const std::string& principal, int64_t now,
                 admin::v1::Upgrade& upgrade, Step& step);

}  // namespace rocegw::upgrades
