// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/seal/sealed_datagram.h"

#include <algorithm>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;

// Places in the trailer.
constexpr size_t kSealFlagsAt = 1;
constexpr size_t kSealEpochAt = 2;
constexpr size_t kSealChannelAt = 4;  // and a reserved byte
constexpr size_t kSealKeyIdAt = 8;
constexpr size_t kSealSequenceAt = 12;
constexpr size_t kSealTagAt = 20;
constexpr uint8_t kSealEncryptedBit = 0x01;
constexpr int kSealPadShift = 2;
constexpr int kSealVersionShift = 4;
// Places in the BTH.
constexpr size_t kSealedBthFlagsAt = 1;
constexpr size_t kSealedBthQpnWordAt = 4;
constexpr size_t kSealedBthPsnWordAt = 8;
constexpr uint8_t kSealedBthPadMask = 0x30;
constexpr int kSealedBthPadShift = 4;

bool MayBeSealed(Opcode opcode) {
  return opcode == Opcode::kChannelFrame || opcode == Opcode::kChannelAck ||
         opcode == Opcode::kChannelBundle;
}

// Covers both addresses, the fields of the BTH that a channel uses, and the trailer. Not the
// congestion hint, since switches change it.
SealHeader CoverSealed(const Gid& source, const Gid& destination, uint32_t qpn, uint32_t psn,
                       const uint8_t* trailer) {
  SealHeader header{};
  auto at = std::copy(source.bytes.begin(), source.bytes.end(), header.begin());
  at = std::copy(destination.bytes.begin(), destination.bytes.end(), at);
  StoreBe32(&*at, qpn & 0xFFFFFF);
  StoreBe32(&*(at + 4), psn & 0xFFFFFF);
  std::copy(trailer, trailer + kSealTagAt, at + 8);
  return header;
}

void EncodeSealTrailer(const SealTrailer& trailer, uint8_t* out) {
  out[0] = static_cast<uint8_t>(trailer.inner);
  out[kSealFlagsAt] =
      static_cast<uint8_t>(kChannelVersion << kSealVersionShift | trailer.pad << kSealPadShift |
                           (trailer.encrypted ? kSealEncryptedBit : 0));
  StoreBe16(out + kSealEpochAt, trailer.epoch);
  StoreBe32(out + kSealChannelAt, trailer.channel.value << 8);
  StoreBe32(out + kSealKeyIdAt, trailer.key_id);
  StoreBe64(out + kSealSequenceAt, trailer.sequence);
}

DropReason DecodeSealTrailer(const uint8_t* p, size_t content, SealTrailer& trailer) {
  trailer.inner = static_cast<Opcode>(p[0]);
  const uint8_t flags = p[kSealFlagsAt];
  if (flags >> kSealVersionShift != kChannelVersion) return DropReason::k_channel_version;
  if (!MayBeSealed(trailer.inner)) return DropReason::k_channel_kind;
  if ((flags & 2) != 0) return DropReason::k_channel_flags;
  trailer.encrypted = (flags & kSealEncryptedBit) != 0;
  trailer.pad = flags >> kSealPadShift & 3;
  trailer.epoch = LoadBe16(p + kSealEpochAt);
  const uint32_t channel = LoadBe32(p + kSealChannelAt);
  trailer.channel = Qpn{channel >> 8};
  trailer.key_id = LoadBe32(p + kSealKeyIdAt);
  trailer.sequence = LoadBe64(p + kSealSequenceAt);
  if ((channel & 0xFF) != 0 || trailer.sequence == 0) return DropReason::k_channel_field;
  return trailer.pad < content ? DropReason::kNone : DropReason::k_truncated;
}

}  // namespace

SealHeader BeginSeal(const Path& path, SealTrailer trailer, uint8_t* datagram, size_t length) {
  trailer.inner = static_cast<Opcode>(datagram[0]);
  trailer.pad = (datagram[kSealedBthFlagsAt] & kSealedBthPadMask) >> kSealedBthPadShift;
  datagram[0] = static_cast<uint8_t>(Opcode::kChannelSealed);
  datagram[kSealedBthFlagsAt] &= static_cast<uint8_t>(~kSealedBthPadMask);
  EncodeSealTrailer(trailer, datagram + length);
  return CoverSealed(path.source, path.destination, LoadBe32(datagram + kSealedBthQpnWordAt),
                     LoadBe32(datagram + kSealedBthPsnWordAt), datagram + length);
}

DropReason DecodeSealed(const RxPacket& packet, SealedParts& parts) {
  const std::span<const uint8_t> body = packet.payload;
  if (body.size() < kSealLength + 4) return DropReason::k_truncated;
  if (body.size() % 4 != 0) return DropReason::k_bad_pad;
  parts.content = body.first(body.size() - kSealLength);
  const uint8_t* const trailer = parts.content.data() + parts.content.size();
  parts.tag = body.last(FrameKey::kTagLength);
  const Bth& bth = packet.headers.bth;
  parts.header = CoverSealed(packet.meta.source, packet.meta.destination, bth.dest_qpn.value,
                             bth.psn.value, trailer);
  return DecodeSealTrailer(trailer, parts.content.size(), parts.trailer);
}

RxPacket Unsealed(const RxPacket& packet, const SealTrailer& trailer,
                  std::span<const uint8_t> plain) {
  RxPacket inner = packet;
  inner.headers.bth.opcode = trailer.inner;
  inner.headers.bth.pad_count = trailer.pad;
  inner.traits = &TraitsOf(trailer.inner);
  inner.payload = plain.first(plain.size() - trailer.pad);
  inner.verified = true;
  return inner;
}

}  // namespace rocegw::wire
