// SPDX-License-Identifier: Apache-2.0
// What a port queue counts about itself. The owning worker writes, any thread may read.
#pragma once

#include "gateway/metrics/worker_counters.h"

namespace rocegw::port {

struct PortCounters {
  metrics::Counter tx_calls;         // system calls or device bursts that sent something
  metrics::Counter tx_segmented;     // packets that left behind a shared header (UDP_SEGMENT)
  metrics::Counter tx_pushback;      // times the network could not take a packet at once
  metrics::Counter tx_lost;          // packets given up: no route, too long, refused
  metrics::Counter tx_source_ports;  // sockets opened for a source port
  metrics::Counter rx_calls;         // system calls or device bursts that yielded something
  metrics::Counter rx_merged;        // packets that came merged with others (UDP_GRO)
  metrics::Counter rx_overflow;      // packets the receive buffer had no room for
  metrics::Counter rx_not_roce;      // frames that were not for UDP 4791 at an own address
  metrics::Counter rx_malformed;     // frames with headers that do not fit, or truncated ones
  metrics::Counter captured;         // packets written to a capture
};

}  // namespace rocegw::port
