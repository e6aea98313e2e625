// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/fleet_peers.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace rocegw::session {

void FleetPeers::Set(const std::string& name, const std::vector<wire::Gid>& addresses) {
  const std::set<wire::Gid> now(addresses.begin(), addresses.end());
  const std::set<wire::Gid> before = std::exchange(peers_[name], now);
  if (now.empty()) peers_.erase(name);
  for (const wire::Gid& address : before) {
    if (now.contains(address)) continue;
    const auto holders = holders_.find(address);
    holders->second.erase(name);
    if (!holders->second.empty()) {
      names_[address] = *holders->second.begin();
      continue;
    }
    holders_.erase(holders);
    tell_(address, false);
  }
  for (const wire::Gid& address : now) {
    if (before.contains(address)) continue;
    std::set<std::string>& holders = holders_[address];
    const bool is_new = holders.empty();
    holders.insert(name);
    names_[address] = *holders.begin();
    if (is_new) tell_(address, true);
  }
  if (names_.size() > kMostNames)
    std::erase_if(names_, [this](const auto& one) { return !holders_.contains(one.first); });
}

std::string FleetPeers::LabelOf(const wire::Gid& address) {
  const auto known = names_.find(address);
  if (known == names_.end()) return kOther;
  constexpr size_t kPrefix = std::string_view("gateways/").size();
  std::string id = known->second.substr(std::min(kPrefix, known->second.size()));
  if (labels_.contains(id)) return id;
  if (labels_.size() == kMostLabels) return kOther;
  labels_.insert(id);
  return id;
}

}  // namespace rocegw::session
