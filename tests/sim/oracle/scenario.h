// SPDX-License-Identifier: Apache-2.0
// Random world from one number: topology, links, faults, hosts, connections and their traffic,
// checked by the oracle (talker.h). The same seed gives the same world and the same run, so a
// failure is reproduced from its seed.
#pragma once

#include <cstdint>
#include <string>

namespace rocegw::sim {

struct OracleResult {
  std::string failure;      // empty: everything was correct
  std::string world;        // description of the world in a line
  uint64_t packets = 0;     // that entered the network
  uint64_t deliveries = 0;  // over links
  uint64_t requests = 0;
  uint64_t bytes = 0;
  uint64_t lost = 0;  // packets lost by faults and full queues, including NIC receive queues
  uint64_t retransmitted = 0;
  uint64_t channel_frames = 0;  // delivered by channels
  uint64_t bundled = 0;         // frames and acknowledgements sent in bundles
  uint64_t engine_copies = 0;   // writes that copy engines made
  uint64_t declined = 0;        // connections that were to have a channel and did not get one
  uint64_t shared = 0;          // connection ends that take receives from a shared queue
  uint64_t endpoint_requests = 0;
  uint64_t less_order = 0;       // connections with requests that ask for less order than verbs
  uint64_t hand_overs = 0;       // hosts handed over with at least one object
  uint64_t handed_over = 0;      // objects
  uint64_t not_handed_over = 0;  // objects of these hosts that were left
  uint64_t trace_hash = 0;
  double virtual_seconds = 0;

  bool ok() const { return failure.empty(); }
};

// Error that the oracle must detect, for its own tests.
enum class Sabotage : uint8_t {
  kNone,
  kStrayByte,    // a byte changes that no request may change
  kWrongAnswer,  // READs return other bytes than the owner wrote
  kNoFlush,      // requests after a failure complete with success
};

// Connections that use channels: in every other world most do. The rest of a world is the same
// either way.
enum class OracleChannels : uint8_t { kBySeed, kNever, kAlways };

// Hand-overs of hosts at random moments. kRandom: to fresh queue pairs (Host::HandOver), which
// changes nothing in a world: its trace is the same either way. kWorkers: to fresh workers
// (Host::ReplaceWorkers), in worlds whose hosts also switch their congestion control by policy.
enum class OracleHandOvers : uint8_t { kNone, kRandom, kWorkers };

OracleResult RunOracle(uint64_t seed, Sabotage sabotage = Sabotage::kNone,
                       OracleChannels channels = OracleChannels::kBySeed,
                       OracleHandOvers hand_overs = OracleHandOvers::kNone);

}  // namespace rocegw::sim
