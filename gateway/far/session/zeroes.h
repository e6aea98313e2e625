// SPDX-License-Identifier: Apache-2.0
// Zeroes in a session's space.
#pragma once

#include <cstdint>

#include "gateway/far/session/dispatcher.h"

namespace rocegw::far {

// Makes the range read as zero, and waits. Pages that were never written are zero already: nothing
// is sent for them. EINVAL: the range is not within the space. EIO: no donor took the zeroes.
int WriteZeroes(Dispatcher& dispatcher, uint64_t offset, uint64_t length);

}  // namespace rocegw::far
