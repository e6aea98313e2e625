// SPDX-License-Identifier: Apache-2.0
// Whether an interface counts the IPv4 ID up when it splits a large UDP packet. Software does;
// network cards with tx-udp-segmentation need not, and the ICRC covers the ID. Control path only.
#pragma once

#include <string>

#include "gateway/base/status.h"

namespace rocegw::port {

struct EgressOffload {
  std::string driver;             // "veth", "mlx5_core"; empty when the interface names none
  bool software = false;          // packets never meet a card that segments
  bool udp_segmentation = false;  // the feature tx-udp-segmentation is on (ethtool -k)

  bool counts_ip_id() const { return software || !udp_segmentation; }
};

// ENODEV when there is no such interface.
StatusOr<EgressOffload> ReadEgressOffload(const std::string& interface);

}  // namespace rocegw::port
