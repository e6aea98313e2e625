// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "gateway/base/time.h"

namespace rocegw::transport {

// How long an RNR NAK's timer code asks to wait (IBTA table 46).
Duration RnrDelay(uint8_t code);

}  // namespace rocegw::transport
