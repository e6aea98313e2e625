// SPDX-License-Identifier: Apache-2.0
// Received bytes of a TCP connection, and what the kernel makes of them.
#pragma once

#include <cstdint>

namespace rocegw::server {

// Returns the number of bytes that have arrived since the connection began.
uint64_t ReceivedBytes(int fd);
// Returns the number of bytes that were read since then.
uint64_t ReadBytes(int fd);
// The kernel doubles this value.
void SetReceiveBuffer(int fd, int bytes);
// Sets how many unread bytes make the socket readable. Applies to all descriptors of the socket. At
// most half of the receive buffer.
void SetLowWater(int fd, int bytes);

}  // namespace rocegw::server
