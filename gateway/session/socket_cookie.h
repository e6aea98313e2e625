// SPDX-License-Identifier: Apache-2.0
// Number of a socket that the kernel gives to no other one (SO_COOKIE, socket(7)).
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>

namespace rocegw::session {

// Returns nothing if the descriptor is no socket.
inline std::optional<uint64_t> CookieOf(int socket) {
  uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (::getsockopt(socket, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

}  // namespace rocegw::session
