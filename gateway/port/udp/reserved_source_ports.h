// SPDX-License-Identifier: Apache-2.0
// UDP source ports that a port group keeps from its start, one for each bucket: programs of other
// users may take every other source port. The queues open sockets of their own on a reserved port.
// Opened on the control thread; read by all workers afterwards.
#pragma once

#include <array>
#include <cstdint>

#include "gateway/base/unique_fd.h"
#include "gateway/port/steering.h"

namespace rocegw::port {

class ReservedSourcePorts {
 public:
  // Reserves a free port for each bucket, except `receiving`. Buckets without a free port get none.
  void Open(uint16_t receiving);

  // Returns the reserved port of the bucket; 0: none.
  uint16_t Of(uint8_t bucket) const { return reserved_[bucket % kBuckets].port; }

 private:
  struct Reserved {
    UniqueFd fd;
    uint16_t port = 0;
  };
  std::array<Reserved, kBuckets> reserved_;
};

}  // namespace rocegw::port
