// SPDX-License-Identifier: Apache-2.0
// Sealed channels of a worker by slot: seals datagrams on their way to the port, and opens those
// that arrive. Belongs to a ChannelSet.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/base/fleet_keys.h"
#include "gateway/channel/protection/channel_protection.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/wire/channel_bundle.h"

namespace rocegw::channel {

class ProtectedChannels {
 public:
  // `keys`: those of the fleet, which may change.
  ProtectedChannels(metrics::WorkerCounters& counters, const FleetKeys& keys)
      : counters_(counters), keys_(keys) {}

  // Returns true if new channels are to seal.
  bool offers() const { return keys_.seals(); }
  // Returns true if no new channel may go without.
  bool required() const { return keys_.sealing_required(); }
  bool wants_encryption() const { return keys_.protection == FrameProtection::kEncrypt; }

  // Begins and ends a sealed channel in a slot.
  void Begin(uint32_t slot, const SealEnds& ends);
  void End(uint32_t slot) { slots_[slot].reset(); }
  // Returns the protection of the channel in a slot; nullptr: it does not seal.
  ChannelProtection* At(uint32_t slot) const {
    return slot < slots_.size() ? slots_[slot].get() : nullptr;
  }

  // Seals a packet with TxPacket::seal. Returns false if it must not leave: its channel is gone, or
  // there is no key.
  bool Seal(port::TxPacket& packet);
  // Opens a datagram of the channel in that slot. `inner` is valid with kNone, until ForgetOpened
  // or until the bytes of `packet` end.
  metrics::DropReason Open(uint32_t slot, const wire::RxPacket& packet,
                           const wire::SealedParts& parts, wire::RxPacket& inner);
  // Ends the use of all decrypted packets.
  void ForgetOpened() { opened_ = 0; }

 private:
  using Plain = std::array<uint8_t, wire::kMaxBundle>;

  metrics::WorkerCounters& counters_;
  const FleetKeys& keys_;
  std::vector<std::unique_ptr<ChannelProtection>> slots_;
  // Decrypted packets of one burst, which bounds their number. Memory operations read them.
  std::vector<std::unique_ptr<Plain>> plains_;
  size_t opened_ = 0;
};

}  // namespace rocegw::channel
