// SPDX-License-Identifier: Apache-2.0
// What an interface does in hardware or software on its own, as `ethtool -k` and `ethtool -i` show
// it (ethtool(8), SIOCETHTOOL). Control path only.
#pragma once

#include <map>
#include <string>

#include "gateway/base/status.h"

namespace rocegw::port {

struct InterfaceFeature {
  bool on = false;
  bool changeable = false;  // by `ethtool -K`
};

struct InterfaceFeatures {
  std::string driver;  // "veth", "mlx5_core"; empty when the interface names none
  bool loopback = false;
  // By the kernel's names: "tx-udp-segmentation", "rx-gro". Empty: the kernel tells of none.
  std::map<std::string, InterfaceFeature> features;

  bool IsOn(const std::string& name) const {
    const auto found = features.find(name);
    return found != features.end() && found->second.on;
  }
};

// ENODEV when there is no such interface.
StatusOr<InterfaceFeatures> ReadFeatures(const std::string& interface);

}  // namespace rocegw::port
