// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw::transport {

// Returns the wait that an RNR NAK's timer code asks for (IBTA table 46).
Duration RnrDelay(uint8_t code);

}  // namespace rocegw::transport
