// SPDX-License-Identifier: Apache-2.0
#include "gateway/worker/send/frame_bundler.h"

#include <algorithm>
#include <cstring>

#include "gateway/wire/channel_bundle.h"

namespace rocegw::worker {
namespace {

// Packets of one channel have the same destination number in the BTH (byte 4 is the hint).
constexpr size_t kDestinationAt = 5;
constexpr size_t kDestinationLength = 3;

bool SameChannel(const port::TxPacket& a, const port::TxPacket& b) {
  return std::memcmp(a.data + kDestinationAt, b.data + kDestinationAt, kDestinationLength) == 0 &&
         a.path.source_port == b.path.source_port && a.path.traffic_class == b.path.traffic_class &&
         a.path.destination == b.path.destination && a.path.source == b.path.source &&
         a.path.hop_limit == b.path.hop_limit && a.seal == b.seal;
}

std::span<const uint8_t> BytesOf(const port::TxPacket& packet) {
  return {packet.data, packet.length};
}

}  // namespace

FrameBundler::Open* FrameBundler::Find(const port::TxPacket& packet) {
  const size_t count = std::min(used_, open_.size());
  for (size_t i = 0; i < count; ++i) {
    Open& open = open_[(used_ - 1 - i) % open_.size()];
    if (SameChannel(*open.packet, packet)) return &open;
  }
  return nullptr;
}

bool FrameBundler::Join(port::TxPacket& packet) {
  if (!packet.bundles || !wire::MayBundle(BytesOf(packet))) return false;
  Open* const open = Find(packet);
  if (open == nullptr) {
    open_[used_++ % open_.size()] = {
        .packet = &packet,
        .most = std::min(limits_.MaxDatagramTo(packet.path.destination) - wire::kIcrcLength -
                             (packet.seal == 0 ? 0 : wire::kSealLength),
                         wire::kBthLength + wire::kMaxBundle)};
    return false;
  }
  port::TxPacket& first = *open->packet;
  const size_t more =
      wire::EntryLength(BytesOf(packet)) + (open->bundle ? 0 : wire::kBundleEntryLength);
  if (packet.length > kMostJoined || first.length + more > open->most) {
    // The packet closes the earlier one, so that the channel's packets keep their order.
    open->packet = &packet;
    open->bundle = false;
    return false;
  }
  // An entry is one piece of memory.
  first.Flatten();
  packet.Flatten();
  size_t length = first.length;
  if (!open->bundle) {
    length = wire::BeginBundle(first.data, length);
    open->bundle = true;
    ++bundles_;
    ++entries_;
  }
  first.length = static_cast<uint32_t>(wire::AppendToBundle(first.data, length, BytesOf(packet)));
  first.known_crc = {};
  ++entries_;
  return true;
}

}  // namespace rocegw::worker
