// SPDX-License-Identifier: Apache-2.0
// The facts of the host, as the calling process sees them in its namespaces: limits, capabilities,
// sysctls, clock, files, sockets, interfaces. What cannot be read is left at what says nothing bad.
// Blocking, some milliseconds; any thread.
#pragma once

#include <string>

#include "gateway/doctor/facts.h"

namespace rocegw::doctor {

// Where the kernel's file systems are.
struct Roots {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string dev = "/dev";
};

HostFacts ReadHost(const GatewayFacts& gateway, const Roots& roots = {});

// What a process may do, of /proc/PID/status: "CapEff".
uint64_t EffectiveCapabilities(const std::string& status);
// "6.1.0-18-amd64" is before (6, 4). What is no release is not.
bool IsBefore(const std::string& release, int major, int minor);

}  // namespace rocegw::doctor
