// SPDX-License-Identifier: Apache-2.0
// Bounds of the connections on the TLS port that have shown no certificate yet.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rocegw::server {

struct FrontLimits {
  size_t strangers = 1024;
  size_t strangers_per_source = 512;
  // Strangers that gRPC serves at the same time.
  size_t handed = 8;
  size_t handed_per_source = 2;
  // Time of a stranger in its slot after which another one that waits may take the slot.
  std::chrono::milliseconds slot_time{1000};
  // Time from accept to a complete ClientHello.
  std::chrono::milliseconds hello_time{10000};
  // Time from the ClientHello to the first call with a certificate.
  std::chrono::milliseconds stranger_time{30000};
  // Bytes after which gRPC reads no more of a stranger. Checked when data arrives; more may be read
  // until the front's thread runs. Covers a handshake and the headers of a call, or a Join.
  uint64_t stranger_bytes = 6144;
  // Bytes after which a stranger is closed. Covers the 64 KiB of a message that HTTP/2 accepts
  // before the call is known.
  uint64_t held_bytes = 80 * 1024;
  // Time until a stranger whose reading stopped is closed.
  std::chrono::milliseconds held_time{2000};
  size_t per_member = 256;
  // Limit of descriptor numbers: a connection with this number or a higher one is refused.
  int descriptors = 1 << 20;
};

// Returns limits for a process with this RLIMIT_NOFILE.
FrontLimits LimitsFor(uint64_t descriptor_limit);

}  // namespace rocegw::server
