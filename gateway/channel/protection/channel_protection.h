// SPDX-License-Identifier: Apache-2.0
// Keys and sequence numbers of one sealed channel. Each direction has a key that both ends derive
// from a key of the fleet, both addresses, channel numbers and epochs, and a random salt that each
// end draws for this channel. An end never seals two datagrams under one nonce:
//   - its salt is new with every channel, so another channel, also the same one after a restart,
//     has other keys, whatever a peer or an attacker repeats;
//   - its sequence number only grows, also while keys of the fleet are replaced and return;
//   - a gateway that takes over goes on far beyond the number that it was handed.
// A forged datagram changes nothing but the set of derived keys, of which there is one per key of
// the fleet. Belongs to one worker.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "gateway/base/fleet_keys.h"
#include "gateway/channel/protection/sequence_window.h"
#include "gateway/port/packet_port.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/seal/sealed_datagram.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

// Addresses, number, epoch and offer of this end, which exist before the peer answers.
struct SealEnds {
  wire::Gid source;
  wire::Gid peer;
  Qpn number;
  uint32_t epoch = 0;
  wire::SealOffer offer;
};

// For display.
struct SealSnapshot {
  bool encrypted = false;
  uint32_t tx_key_id = 0;  // 0: nothing was sealed yet
  uint32_t rx_key_id = 0;  // key of the last good datagram; 0: none
};

class ChannelProtection {
 public:
  explicit ChannelProtection(const SealEnds& ends) : ends_(ends) {}

  const wire::SealOffer& offer() const { return ends_.offer; }
  // Takes the peer's part. Nothing is sealed before.
  void Agree(Qpn number, uint32_t epoch, const wire::SealOffer& offer);
  bool agreed() const { return agreed_; }
  bool encrypts() const { return encrypts_; }

  // Seals the datagram, which has space for the trailer. Returns false if that failed.
  bool Seal(const FleetKeys& keys, port::TxPacket& packet);
  // Returns kNone if the datagram is the peer's, has not been taken before, and is decrypted to
  // `plain` if it was encrypted.
  metrics::DropReason Open(const FleetKeys& keys, const wire::SealedParts& parts, uint8_t* plain);

  SealSnapshot Snapshot() const;
  // Writes the state, or reads it into a new object with the same ends (hand_over/).
  void HandOver(hand_over::StateStream& state);

 private:
  // A gateway that takes over skips so many numbers, so that none repeats even if its predecessor
  // has sealed more after it wrote its state.
  static constexpr uint64_t kTakeOverGap = uint64_t{1} << 32;

  struct Derived {
    uint32_t id = 0;
    std::unique_ptr<FrameKey> key;
  };

  std::unique_ptr<FrameKey> Derive(const FleetKeys& keys, const SecretKey& key, bool out) const;
  FrameKey* KeyFor(const FleetKeys& keys, uint32_t id);

  SealEnds ends_;
  // The peer's part.
  Qpn peer_number_;
  uint32_t peer_epoch_ = 0;
  wire::SealOffer peer_offer_;
  bool agreed_ = false;
  bool encrypts_ = false;

  uint64_t sequence_ = 0;  // number of the last datagram that was sealed
  SequenceWindow taken_;
  Derived out_;
  std::array<Derived, FleetKeys::kMost> in_;
  uint32_t last_id_ = 0;  // key of the last good datagram
};

}  // namespace rocegw::channel
