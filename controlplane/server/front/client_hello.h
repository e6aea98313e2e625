// SPDX-License-Identifier: Apache-2.0
// Look at the first TLS record of a connection, which stays in the socket.
#pragma once

#include <cstdint>

namespace rocegw::server {

enum class HelloState : uint8_t { kIncomplete, kComplete, kNoTls };

// Largest part of a ClientHello that is waited for. Must fit the receive buffer of a stranger.
inline constexpr int kMostHelloBytes = 4096;

// Does not block. An error of the socket counts as kIncomplete: the poll reports it.
HelloState LookAtHello(int fd);

}  // namespace rocegw::server
