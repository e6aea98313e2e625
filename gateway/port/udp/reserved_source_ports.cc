// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/reserved_source_ports.h"

#include <cerrno>
#include <utility>

#include "gateway/port/udp/udp_socket.h"

namespace rocegw::port {

void ReservedSourcePorts::Open(uint16_t receiving) {
  for (uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
    // From the highest path hash down: Linux gives ports above 60999 to no program by itself.
    for (unsigned hash = UINT8_MAX + 1; hash-- > 0;) {
      const uint16_t port = SourcePort(static_cast<uint8_t>(hash), Qpn{bucket << kBucketShift});
      if (port == receiving) continue;
      auto opened = OpenSilentSocket(port, true);
      if (opened.ok()) {
        reserved_[bucket] = {std::move(*opened), port};
        break;
      }
      if (opened.status().error() != EADDRINUSE) return;
    }
  }
}

}  // namespace rocegw::port
