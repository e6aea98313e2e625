// SPDX-License-Identifier: Apache-2.0
// What only who sees the whole fleet can find: gateways that are away or lag, versions and clocks
// that part, links of different MTU, pools that do not run. Pure; what is found when is in
// docs/operate/doctor.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rocegw/gateway/v1/debug.pb.h"
#include "rocegw/types/v1/gateway.pb.h"
#include "rocegw/types/v1/pool.pb.h"

namespace rocegw::cli {

// How far a clock is ahead of this machine's, as far as the way there lets one see.
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
  std::vector<uint32_t> mtus;  // of its ports' interfaces
};

struct FleetFacts {
  std::string controller_version;
  ClockReading controller_clock;
  std::vector<GatewayReading> gateways;
  std::vector<types::v1::Pool> pools;
  int64_t now = 0;  // seconds since 1970
};

// The clock of who answered between two readings of ours.
ClockReading ReadClock(int64_t asked_ns, int64_t answered_ns, int64_t theirs_ns);

// All that the gateways found and all that is found here, the worst first.
gateway::v1::DiagnoseResponse ExamineFleet(const FleetFacts& facts);

// Each for itself.
gateway::v1::Diagnosis CheckState(const GatewayReading& reading, int64_t now);
gateway::v1::Diagnosis CheckHostClock(const GatewayReading& reading,
                                      const ClockReading& controller);
gateway::v1::Diagnosis CheckVersions(const FleetFacts& facts);
gateway::v1::Diagnosis CheckMtus(const FleetFacts& facts);
// One for each pool that does not run as it should, else one for all.
std::vector<gateway::v1::Diagnosis> CheckPools(const std::vector<types::v1::Pool>& pools);

}  // namespace rocegw::cli
