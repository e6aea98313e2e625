// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/front/front_limits.h"

#include <algorithm>

namespace rocegw::server {

FrontLimits LimitsFor(uint64_t descriptor_limit) {
  FrontLimits limits;
  const size_t eighth = std::max<size_t>(descriptor_limit / 8, 4);
  // A stranger uses two descriptors.
  limits.strangers = std::min(limits.strangers, eighth);
  limits.strangers_per_source = std::min(limits.strangers_per_source, limits.strangers / 2);
  limits.handed = std::min(limits.handed, limits.strangers);
  limits.handed_per_source = std::min(limits.handed_per_source, limits.handed / 2);
  limits.per_member = std::min(limits.per_member, 2 * eighth);
  limits.descriptors = static_cast<int>(
      std::min<uint64_t>(descriptor_limit - std::min<uint64_t>(eighth, 256), 1U << 30));
  return limits;
}

}  // namespace rocegw::server
