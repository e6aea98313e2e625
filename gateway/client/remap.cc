// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/remap.h"

namespace rocegw::client {

Region* RemapForRegistration(Session*, uint64_t, uint64_t) { return nullptr; }
void ReleaseRegion(Region*) {}
uint32_t RegionHandle(const Region*) { return 0; }
uint64_t RegionOffset(const Region*, uint64_t) { return 0; }

}  // namespace rocegw::client
