// SPDX-License-Identifier: Apache-2.0
#include "gateway/datapath/config.h"

#include <algorithm>

namespace rocegw::datapath {

uint32_t EffectiveWorkers(const Config& config, uint32_t processors) {
  if (config.workers != 0) return config.workers;
  return std::clamp(processors / 4, 1u, kMaxWorkers);
}

const char* PortModeName(PortMode mode) { return kPortModes[static_cast<size_t>(mode)].first; }

}  // namespace rocegw::datapath
