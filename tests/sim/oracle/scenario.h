// SPDX-License-Identifier: Apache-2.0
// A whole random world from one number: topology, links, faults, hosts, connections and what is
// said on them, with the oracle (talker.h) watching. The same seed gives the same world and the
// same run, so a seed is all that a failure needs to be repeated.
#pragma once

#include <cstdint>
#include <string>

namespace rocegw::sim {

struct OracleResult {
  std::string failure;      // empty: everything was right
  std::string world;        // what the seed made, in a line
  uint64_t packets = 0;     // that entered the network
  uint64_t deliveries = 0;  // over links
  uint64_t requests = 0;
  uint64_t bytes = 0;
  uint64_t lost = 0;  // packets, by faults and full queues, those of NICs' receivers among them
  uint64_t retransmitted = 0;
  uint64_t channel_frames = 0;  // that channels have delivered
  uint64_t declined = 0;        // connections that were to have a channel and went without
  uint64_t shared = 0;          // ends of connections that take receives from a shared queue
  uint64_t endpoint_requests = 0;
  uint64_t less_order = 0;  // connections with requests that ask for less order than verbs
  uint64_t trace_hash = 0;
  double virtual_seconds = 0;

  bool ok() const { return failure.empty(); }
};

// What the oracle must notice, for its own tests.
enum class Sabotage : uint8_t {
  kNone,
  kStrayByte,    // a byte changes that belongs to nobody
  kWrongAnswer,  // what READs bring is not what the owner put there
  kNoFlush,      // behind a failure requests succeed
};

// Which connections ride on channels: in every other world most do; the rest of a world is the same
// either way.
enum class OracleChannels : uint8_t { kBySeed, kNever, kAlways };

OracleResult RunOracle(uint64_t seed, Sabotage sabotage = Sabotage::kNone,
                       OracleChannels channels = OracleChannels::kBySeed);

}  // namespace rocegw::sim
