// SPDX-License-Identifier: Apache-2.0
// Keys that the gateways of a fleet share, and what holds towards a peer that has none. The first
// key makes tags; every key of the set verifies them, so that a key can be replaced while gateways
// learn of the new one at different times. Plain data; the control thread makes it, the discovery
// engine and each worker hold a copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/base/secret_sequence.h"

namespace rocegw {

enum class PeerAuthentication : uint8_t {
  kOff,        // keys are not used
  kPreferred,  // a peer without a key is served too, and counted
  kRequired,   // no channel with a peer that does not prove that it has a key
};

struct FleetKeys {
  // The new generation, the one before it, and the one that follows and is not used for tags yet.
  static constexpr size_t kMost = 3;

  PeerAuthentication policy = PeerAuthentication::kPreferred;
  uint8_t count = 0;
  std::array<SecretKey, kMost> keys{};

  bool active() const { return count != 0 && policy != PeerAuthentication::kOff; }
  bool required() const { return policy == PeerAuthentication::kRequired; }
  const SecretKey& signer() const { return keys[0]; }
  std::span<const SecretKey> verifiers() const {
    return active() ? std::span(keys).first(count) : std::span<const SecretKey>();
  }
  bool operator==(const FleetKeys&) const = default;
};

}  // namespace rocegw
