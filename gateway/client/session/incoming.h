// SPDX-License-Identifier: Apache-2.0
// Message that a session received from its daemon.
#pragma once

#include <cstdint>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

struct Session::Incoming {
  alignas(16) unsigned char message[ROCEGW_MESSAGE_MAX];
  uint32_t size;
  int descriptor;  // -1: none
};

}  // namespace rocegw::client
