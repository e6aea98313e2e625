// SPDX-License-Identifier: Apache-2.0
// Features of an interface in hardware or software, as `ethtool -k` and `ethtool -i` show them
// (ethtool(8), SIOCETHTOOL). Control path only.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gateway/base/status.h"

namespace rocegw::port {

struct InterfaceFeature {
  bool on = false;
  bool changeable = false;  // `ethtool -K` can change it
};

struct InterfaceFeatures {
  std::string driver;  // "veth", "mlx5_core"; empty if unknown
  bool loopback = false;
  bool ethernet = false;  // its frames have Ethernet headers
  // Features by kernel name: "tx-udp-segmentation", "rx-gro". Empty: the kernel reports none.
  std::map<std::string, InterfaceFeature> features;

  bool IsOn(const std::string& name) const {
    const auto found = features.find(name);
    return found != features.end() && found->second.on;
  }
};

// Returns ENODEV if there is no such interface.
StatusOr<InterfaceFeatures> ReadFeatures(const std::string& interface);

struct InterfaceQueues {
  uint32_t receive = 1;
  uint32_t transmit = 1;
  // True: the driver does not say how many queues it uses. `receive` counts the queues that the
  // kernel allocated, some of which may be unused, and `transmit` is 1.
  bool allocated = false;
};

// Returns the numbers of queues that the interface uses, as `ethtool -l` shows them.
InterfaceQueues ReadQueues(const std::string& interface);

}  // namespace rocegw::port
