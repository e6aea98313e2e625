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

#include "gateway/base/frame_cipher.h"
#include "gateway/base/secret_sequence.h"

namespace rocegw {

enum class PeerAuthentication : uint8_t {
  kOff,        // keys are not used
  kPreferred,  // a peer without a key is served too, and counted
  kRequired,   // no channel with a peer that does not prove that it has a key
};

// Whether frames, acknowledgements and bundles of channels carry tags (wire/seal). Control packets
// have tags of their own, by PeerAuthentication.
enum class FrameProtection : uint8_t {
  kOff,        // no channel seals its datagrams
  kPreferred,  // with peers that seal too; channels to others carry plain frames
  kRequired,   // no channel with a peer that does not seal
  kEncrypt,    // likewise, and the content is encrypted
};

// Number by which both ends name a key of the fleet. It gives away nothing about the key.
constexpr uint32_t KeyIdOf(const SecretKey& key) {
  return static_cast<uint32_t>(SipHash(key, uint64_t{0x6b65792d6964}));
}

struct FleetKeys {
  // The new generation, the one before it, and the one that follows and is not used for tags yet.
  static constexpr size_t kMost = 3;

  PeerAuthentication policy = PeerAuthentication::kPreferred;
  uint8_t count = 0;
  std::array<SecretKey, kMost> keys{};
  FrameProtection protection = FrameProtection::kOff;
  const FrameCiphers* ciphers = nullptr;  // outlives all copies; nullptr: nothing can be sealed

  bool active() const { return count != 0 && policy != PeerAuthentication::kOff; }
  bool required() const { return policy == PeerAuthentication::kRequired; }
  // Returns true if this gateway seals datagrams of channels to peers that do so too.
  bool seals() const {
    return active() && protection != FrameProtection::kOff && ciphers != nullptr;
  }
  bool sealing_required() const { return protection >= FrameProtection::kRequired; }
  const SecretKey& signer() const { return keys[0]; }
  std::span<const SecretKey> verifiers() const {
    return active() ? std::span(keys).first(count) : std::span<const SecretKey>();
  }
  bool operator==(const FleetKeys&) const = default;
};

}  // namespace rocegw
