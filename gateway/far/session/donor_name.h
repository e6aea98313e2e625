// SPDX-License-Identifier: Apache-2.0
// Donors as they are written on command lines.
#pragma once

#include <string>

#include "gateway/base/status.h"
#include "gateway/far/session/settings.h"

namespace rocegw::far {

// Reads "HOST", "HOST:PORT" or "[ADDRESS]:PORT"; an empty port means the default. EINVAL: none of
// them.
StatusOr<Settings::Donor> ReadDonor(const std::string& text);

}  // namespace rocegw::far
