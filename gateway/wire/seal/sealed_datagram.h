// SPDX-License-Identifier: Apache-2.0
// Sealed datagram (BTH opcode 0xC4): a frame, an acknowledgement or a bundle of a channel, with a
// trailer that holds a sequence number and a tag over the datagram and both addresses. The content
// stays where it is, and may be encrypted. Bytes: docs/develop/wire_format.md. Pure functions;
// lengths in bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gateway/base/frame_cipher.h"
#include "gateway/base/ids.h"
#include "gateway/wire/codec.h"
#include "gateway/wire/opcode.h"

namespace rocegw::wire {

static_assert(kSealLength == 20 + FrameKey::kTagLength);

// Trailer of a sealed datagram, without its tag.
struct SealTrailer {
  Opcode inner = Opcode::kChannelFrame;  // or kChannelAck, kChannelBundle
  bool encrypted = false;
  uint8_t pad = 0;        // pad of the content, which the BTH of the content alone would tell
  uint16_t epoch = 0;     // low 16 bits of the receiver's epoch
  Qpn channel;            // sender's channel number
  uint32_t key_id = 0;    // key of the fleet (KeyIdOf)
  uint64_t sequence = 0;  // counts sealed datagrams of the channel's direction, never 0
  bool operator==(const SealTrailer&) const = default;
};

// Bytes that the tag covers in front of the content.
using SealHeader = std::array<uint8_t, 64>;

// Parts of a sealed datagram.
struct SealedParts {
  SealTrailer trailer;
  SealHeader header{};
  std::span<const uint8_t> content;
  std::span<const uint8_t> tag;  // FrameKey::kTagLength bytes
};

// Turns a datagram without ICRC, which has space for kSealLength more bytes, into a sealed one
// whose tag is still missing. The opcode and the pad move from the BTH into the trailer. Returns
// the bytes that the tag covers in front of the content.
SealHeader BeginSeal(const Path& path, SealTrailer trailer, uint8_t* datagram, size_t length);

// Reads the parts of a sealed packet. Returns kNone, or the reason for which it is dropped. Proves
// nothing: the tag is not looked at.
[[nodiscard]] metrics::DropReason DecodeSealed(const RxPacket& packet, SealedParts& parts);
// Returns the packet that the content (`plain`, decrypted) is, with `verified` set.
RxPacket Unsealed(const RxPacket& packet, const SealTrailer& trailer,
                  std::span<const uint8_t> plain);

}  // namespace rocegw::wire
