// SPDX-License-Identifier: Apache-2.0
// Keeps a second gateway out of a network namespace: with SO_REUSEPORT it could silently join the
// socket group on 4791 and take packets away. The lock is a listening socket with an abstract name
// (unix(7)); such names belong to the network namespace and vanish with the process.
#pragma once

#include <cstdint>
#include <memory>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::port {

// Holds the lock for as long as the descriptor lives. EADDRINUSE names the process that holds it.
StatusOr<UniqueFd> LockInstance(uint16_t udp_port);

// Keeps the kernel from answering packets that a port takes past it: as long as any copy of the
// result lives, UDP packets to the port are accepted by the kernel and dropped, instead of drawing
// "port unreachable". Holds the instance lock too. Ports of one process in one network namespace
// share it.
StatusOr<std::shared_ptr<void>> SilenceKernel(uint16_t udp_port);

}  // namespace rocegw::port
