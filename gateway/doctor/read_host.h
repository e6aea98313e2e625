// SPDX-License-Identifier: Apache-2.0
// Facts of the host, as the calling process sees them in its namespaces: limits, capabilities,
// sysctls, clock, files, sockets, interfaces. Unreadable values keep a harmless default. Blocking,
// some milliseconds; any thread.
#pragma once

#include <string>

#include "gateway/doctor/facts.h"

namespace rocegw::doctor {

// Mount points of the kernel's file systems.
struct Roots {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string dev = "/dev";
};

HostFacts ReadHost(const GatewayFacts& gateway, const Roots& roots = {});

// Returns a process's capabilities from /proc/PID/status: "CapEff".
uint64_t EffectiveCapabilities(const std::string& status);
// Compares a kernel release: "6.1.0-18-amd64" is before (6, 4). False for other texts.
bool IsBefore(const std::string& release, int major, int minor);

}  // namespace rocegw::doctor
