// SPDX-License-Identifier: Apache-2.0
// Other gateways of the fleet from the configuration, by address. Tells discovery which addresses
// belong to gateways, and gives metrics names instead of addresses. Owner: session server, control
// thread.
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
  // Limit of peers with a label of their own; later ones, and addresses outside the fleet, get
  // kOther.
  static constexpr size_t kMostLabels = 64;
  static constexpr char kOther[] = "other";

  // `tell`: called when an address starts or stops belonging to a gateway of the fleet.
  explicit FleetPeers(std::function<void(const wire::Gid&, bool member)> tell)
      : tell_(std::move(tell)) {}

  // Sets the addresses of gateway "gateways/G"; none: the gateway was removed.
  void Set(const std::string& name, const std::vector<wire::Gid>& addresses);

  // Returns the metrics label of an address. A peer keeps its label while this process runs, so
  // that its counts stay together.
  std::string LabelOf(const wire::Gid& address);

 private:
  static constexpr size_t kMostNames = 8192;

  std::function<void(const wire::Gid&, bool member)> tell_;
  std::map<std::string, std::set<wire::Gid>> peers_;
  // Several names only while an address moves from one gateway to another.
  std::map<wire::Gid, std::set<std::string>> holders_;
  std::map<wire::Gid, std::string> names_;  // also of removed peers
  std::set<std::string> labels_;
};

}  // namespace rocegw::session
