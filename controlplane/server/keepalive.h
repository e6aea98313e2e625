// SPDX-License-Identifier: Apache-2.0
// Keepalives on the connections of controllers, in milliseconds: they detect vanished peers.
#pragma once

namespace rocegw::server {

inline constexpr int kKeepaliveMs = 30000;
inline constexpr int kKeepaliveTimeoutMs = 10000;

}  // namespace rocegw::server
