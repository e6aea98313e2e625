// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "gateway/daemon/copy_engine/copies.h"

namespace rocegw::daemon {

StatusOr<std::unique_ptr<memory::CopyEngine>> OpenCopyEngine(const port::DpdkEnvironment&,
                                                             const std::vector<std::string>&,
                                                             size_t) {
  return Status(ENOTSUP,
                "copy engine: needs DPDK, which this rocegwd was built without "
                "(ROCEGW_WITH_DPDK)");
}

}  // namespace rocegw::daemon
