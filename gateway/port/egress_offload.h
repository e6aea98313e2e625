// SPDX-License-Identifier: Apache-2.0
// Offloads of an interface that decide if it increments the IPv4 ID when it splits a large UDP
// packet. Software does; network cards with tx-udp-segmentation may not, and the ICRC covers the
// ID. Control path only.
#pragma once

#include <string>

#include "gateway/base/status.h"

namespace rocegw::port {

struct EgressOffload {
  std::string driver;             // "veth", "mlx5_core"; empty if unknown
  bool software = false;          // packets never reach a card that segments
  bool udp_segmentation = false;  // feature tx-udp-segmentation is on (ethtool -k)

  bool counts_ip_id() const { return software || !udp_segmentation; }
};

// Returns ENODEV if there is no such interface.
StatusOr<EgressOffload> ReadEgressOffload(const std::string& interface);

}  // namespace rocegw::port
