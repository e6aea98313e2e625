// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/egress_offload.h"

#include "gateway/port/kernel/interface_features.h"

namespace rocegw::port {

StatusOr<EgressOffload> ReadEgressOffload(const std::string& interface) {
  const auto features = ReadFeatures(interface);
  if (!features.ok()) return features.status();
  EgressOffload offload;
  offload.driver = features.value().driver;
  offload.software = features.value().loopback || offload.driver == "veth" ||
                     offload.driver == "tun" || offload.driver == "dummy";
  offload.udp_segmentation = features.value().IsOn("tx-udp-segmentation");
  return offload;
}

}  // namespace rocegw::port
