// SPDX-License-Identifier: Apache-2.0
// Checks that need a view of the whole fleet: gateways that are disconnected or behind, differing
// versions and clocks, links of different MTU, pools that do not run. Pure; docs/operate/doctor.md
// lists the findings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocegw/gateway/v1/debug.pb.h"
#include "rocegw/types/v1/gateway.pb.h"
#include "rocegw/types/v1/pool.pb.h"

namespace rocegw::cli {

// Offset of another machine's clock to this one's, with its uncertainty.
struct ClockReading {
  int64_t ahead_ns = 0;
  int64_t uncertain_ns = 0;
};

struct GatewayReading {
  types::v1::Gateway gateway;
  bool asked = false;
  std::string problem;  // why it did not answer; empty: it did
  gateway::v1::DiagnoseResponse diagnosis;
  ClockReading clock;
  std::vector<uint32_t> mtus;  // MTUs of its ports' interfaces
};

struct FleetFacts {
  std::string controller_version;
  ClockReading controller_clock;
  std::vector<GatewayReading> gateways;
  std::vector<types::v1::Pool> pools;
  int64_t now = 0;  // seconds since 1970
};

// Computes the offset of a clock that was read between two readings of ours.
ClockReading ReadClock(int64_t asked_ns, int64_t answered_ns, int64_t theirs_ns);

// Returns the findings of the gateways and of these checks, worst first.
gateway::v1::DiagnoseResponse ExamineFleet(const FleetFacts& facts);

// Checks of single gateways.
gateway::v1::Diagnosis CheckState(const GatewayReading& reading, int64_t now);
gateway::v1::Diagnosis CheckHostClock(const GatewayReading& reading,
                                      const ClockReading& controller);
gateway::v1::Diagnosis CheckVersions(const FleetFacts& facts);
gateway::v1::Diagnosis CheckMtus(const FleetFacts& facts);
// Returns a finding for each pool that does not run as it should, else one for all.
std::vector<gateway::v1::Diagnosis> CheckPools(const std::vector<types::v1::Pool>& pools);

}  // namespace rocegw::cli
