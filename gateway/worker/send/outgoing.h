// SPDX-License-Identifier: Apache-2.0
// Packet on its way to a port.
#pragma once

#include <cstdint>

#include "gateway/port/packet_port.h"
#include "gateway/worker/schedule/scheduler.h"

namespace rocegw::worker {

struct Outgoing {
  port::TxPacket* packet = nullptr;
  uint32_t device = 0;
  // Account that pays for the transmission; nullptr: none, as for a channel's own packets.
  Account* account = nullptr;
};

}  // namespace rocegw::worker
