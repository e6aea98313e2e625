// SPDX-License-Identifier: Apache-2.0
// RC queue pairs by rdma_cm. A gateway that restarts ends the device as the removal of a card does:
// links break, the listener ends and is made anew.
#pragma once

#include "examples/kv_store/link.h"

namespace kv {

// Listens on the device that has the address and hands each connection to `on_link`; the first
// Receive() accepts it. Returns when the device is gone or `stop` returns true, which is asked each
// quarter of a second. `listening`: called when peers can connect.
void ServeRdma(const std::string& address, uint16_t port, const std::function<void()>& listening,
               const std::function<bool()>& stop, const OnLink& on_link);

}  // namespace kv
