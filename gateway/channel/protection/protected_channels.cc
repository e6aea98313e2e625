// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/protection/protected_channels.h"

namespace rocegw::channel {

using metrics::DropReason;

void ProtectedChannels::Begin(uint32_t slot, const SealEnds& ends) {
  if (slots_.size() <= slot) slots_.resize(slot + 1);
  slots_[slot] = std::make_unique<ChannelProtection>(ends);
}

bool ProtectedChannels::Seal(port::TxPacket& packet) {
  ChannelProtection* const protection = At(packet.seal - 1);
  packet.seal = 0;
  // A sealed datagram is no entry of a bundle, and its content may be that of several queue pairs.
  packet.bundles = false;
  packet.known_crc = {};
  packet.source_qpn = kInvalidQpn;
  if (protection == nullptr || !protection->Seal(keys_, packet)) return false;
  counters_.channel_sealed_tx_packets.Add();
  return true;
}

DropReason ProtectedChannels::Open(uint32_t slot, const wire::RxPacket& packet,
                                   const wire::SealedParts& parts, wire::RxPacket& inner) {
  ChannelProtection* const protection = At(slot);
  if (protection == nullptr || !protection->agreed()) return DropReason::k_channel_state;
  std::span<const uint8_t> content = parts.content;
  if (content.size() > wire::kMaxBundle) return DropReason::k_bad_length;
  uint8_t* plain = nullptr;
  if (protection->encrypts()) {
    if (opened_ == plains_.size()) plains_.push_back(std::make_unique<Plain>());
    plain = plains_[opened_]->data();
  }
  if (const DropReason reason = protection->Open(keys_, parts, plain); reason != DropReason::kNone)
    return reason;
  if (plain != nullptr) {
    content = {plain, content.size()};
    ++opened_;
  }
  inner = wire::Unsealed(packet, parts.trailer, content);
  counters_.channel_sealed_rx_packets.Add();
  return DropReason::kNone;
}

}  // namespace rocegw::channel
