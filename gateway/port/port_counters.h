// SPDX-License-Identifier: Apache-2.0
// Counters of a port queue, listed in port_counters.def. The owning worker writes, any thread may
// read.
#pragma once

#include "gateway/metrics/worker_counters.h"

namespace rocegw::port {

struct PortCounters {
#define ROCEGW_PORT_COUNTER(name, help) metrics::Counter name;
#include "gateway/port/port_counters.def"
#undef ROCEGW_PORT_COUNTER
};

struct PortCounterInfo {
  const char* name;
  const char* help;
  metrics::Counter PortCounters::*field;
};

// List of port_counters.def, in its order.
inline constexpr PortCounterInfo kPortCounters[] = {
#define ROCEGW_PORT_COUNTER(name, help) {#name, help, &PortCounters::name},
#include "gateway/port/port_counters.def"
#undef ROCEGW_PORT_COUNTER
};

}  // namespace rocegw::port
