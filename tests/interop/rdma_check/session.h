// SPDX-License-Identifier: Apache-2.0
// Session: what one run of rdma_check holds on each side: the control connection, who we are, and
// the settings that the client chose and sent to the server. One thread uses it.
#pragma once

#include <cstdint>
#include <string>

#include "tests/interop/rdma_check/control.h"

namespace rocegw::interop {

struct Settings {
  bool use_cm = true;  // connect through rdma_cm, else exchange QPNs over the control connection
  bool use_events = false;  // sleep on completion channels, else poll
  uint32_t mtu = 1024;      // path MTU for socket exchange; rdma_cm takes the port's
  uint32_t qps = 4;         // in the cases that use several
  uint64_t seed = 1;

  std::string Format() const;
  static Settings Parse(const std::string& text);
};

struct Session {
  Control control;
  bool is_client;
  Settings settings;
};

}  // namespace rocegw::interop
