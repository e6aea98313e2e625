// SPDX-License-Identifier: Apache-2.0
// The fleet's other gateways, as the configuration names them: whose an address is. Discovery is
// told which addresses are those of gateways, and metrics get names in place of addresses. Owner:
// session server, control thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gateway/wire/gid.h"

namespace rocegw::session {

class FleetPeers {
 public:
  // Peers that have a label of their own; whoever comes later, and who is not of the fleet, is
  // kOther.
  static constexpr size_t kMostLabels = 64;
  static constexpr char kOther[] = "other";

  // tell: an address has become one of the fleet's gateways, or is none any more.
  explicit FleetPeers(std::function<void(const wire::Gid&, bool member)> tell)
      : tell_(std::move(tell)) {}

  // name: "gateways/G". None: it is gone.
  void Set(const std::string& name, const std::vector<wire::Gid>& addresses);

  // Of metrics: a peer keeps it for as long as this process lives, so that what was counted under
  // it stays there.
  std::string LabelOf(const wire::Gid& address);

 private:
  static constexpr size_t kMostNames = 8192;

  std::function<void(const wire::Gid&, bool member)> tell_;
  std::map<std::string, std::set<wire::Gid>> peers_;
  // Several only for as long as an address moves from one to another.
  std::map<wire::Gid, std::set<std::string>> holders_;
  std::map<wire::Gid, std::string> names_;  // also of those that are gone
  std::set<std::string> labels_;
};

}  // namespace rocegw::session
