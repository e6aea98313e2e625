// SPDX-License-Identifier: Apache-2.0
// Lock against a second gateway in a network namespace: with SO_REUSEPORT it could silently join
// the socket group on 4791 and take packets away. The lock is a listening socket with an abstract
// name (unix(7)); such names belong to the network namespace and disappear with the process.
// Programs of any user can hold the name. Only gateways of one user can join each other's group, so
// the lock counts if its holder has the same user. IsPortFree tells about all others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::port {

struct InstanceLock {
  UniqueFd fd;
  // Process that holds the name although it is no gateway of this user; empty: the lock was taken.
  std::string squatter;
};

// Takes the lock, held while the descriptor is open. EADDRINUSE names the process that holds it.
StatusOr<InstanceLock> LockInstance(uint16_t udp_port);

// Returns an error that names a remedy if any socket is bound to the UDP port, also one of this
// user's. Gateways of one user that start at the same moment may both find it free.
Status IsPortFree(uint16_t udp_port);

// Opens a socket that makes the kernel accept and drop UDP packets to a port that bypasses it,
// instead of answering "port unreachable". Lasts as long as a copy of the result; also holds the
// instance lock. Ports of one process in one network namespace share it.
StatusOr<std::shared_ptr<void>> SilenceKernel(uint16_t udp_port);

}  // namespace rocegw::port
