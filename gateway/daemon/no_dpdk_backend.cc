// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <string>

#include "gateway/daemon/dpdk_backend.h"

namespace rocegw::daemon {

StatusOr<std::unique_ptr<datapath::PortBackend>> OpenDpdk(const PortConfig& config,
                                                          const port::DpdkEnvironment&, size_t,
                                                          const port::SteeringTable&) {
  return Status(ENOTSUP, std::string("mode ") + datapath::PortModeName(config.mode) +
                             " needs DPDK, which this rocegwd was built without "
                             "(ROCEGW_WITH_DPDK); use mode udp");
}

}  // namespace rocegw::daemon
