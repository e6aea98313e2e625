// SPDX-License-Identifier: Apache-2.0
// Objects whose state is handed over (gateway/hand_over), as bytes that tests keep and damage: an
// example in the middle of its work, and a reader that runs what it has read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rocegw::testing {

// A file names its object by the number, which is never reused.
enum class HandedObject : uint8_t {
  kVersions = 0,
  kChannels = 1,
  kRc = 2,
  kUc = 3,
  kUd = 4,
  kEndpoint = 5,
  kSharedReceives = 6,
  kTombstone = 7,
  kGateway = 8,
  kStagedCarrier = 9,
  kWorker = 10,
  kConnections = 11,
  kMemoryWindow = 12,
  kSessions = 13,
  kFoundation = 14,
  kCount,
};

std::string_view NameOf(HandedObject object);

// Returns the state of an example.
std::vector<uint8_t> ExampleOf(HandedObject object);

// Reads the state into a fresh object and lets the object work for some time. Returns the reason
// for which the state was refused; "": it was read.
std::string ReadAndRun(HandedObject object, std::span<const uint8_t> state);

}  // namespace rocegw::testing
