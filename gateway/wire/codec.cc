// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/codec.h"

#include <cstring>

#include "gateway/wire/byte_order.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/crc/icrc.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;

// Bits of BTH bytes 1 and 4 (IBTA 9.2).
constexpr uint8_t kSolicitedBit = 0x80;
constexpr uint8_t kMigratedBit = 0x40;
constexpr int kPadShift = 4;
constexpr uint8_t kVersionMask = 0x0F;
constexpr uint32_t kAckRequestBit = 0x80000000;
// P_Key without bit 15, which distinguishes full from limited membership; both are the default
// partition.
constexpr uint16_t kPkeyBase = 0x7FFF;

constexpr Headers kNoHeaders{};

// Checks payload and pad against the opcode's rules; `region` is their total length.
DropReason CheckPayload(const OpcodeTraits& traits, size_t region, size_t pad) {
  if (!traits.has_payload) return region == 0 ? DropReason::kNone : DropReason::k_bad_length;
  // Headers and datagrams are multiples of four bytes, so the pad follows from the payload.
  if (region % 4 != 0) return DropReason::k_bad_pad;
  const size_t payload = region - pad;
  size_t most = kMaxPayload;
  if (traits.service == Service::kChannel) most += kMaxFrameLength;
  if (traits.operation == Operation::kChannelSealed) most += kSealLength;
  if (payload > most) return DropReason::k_bad_length;
  if (traits.operation == Operation::kAtomicWrite) {
    return payload == 8 ? DropReason::kNone : DropReason::k_bad_length;
  }
  switch (traits.position) {
    case Position::kFirst:
    case Position::kMiddle:
      // A path MTU is a multiple of four.
      if (pad != 0) return DropReason::k_bad_pad;
      return payload != 0 ? DropReason::kNone : DropReason::k_bad_length;
    case Position::kLast:
      return payload != 0 ? DropReason::kNone : DropReason::k_bad_length;
    case Position::kOnly:
      return DropReason::kNone;
  }
  return DropReason::k_bad_length;
}

void DecodeBth(const uint8_t* p, Bth& bth) {
  bth.opcode = static_cast<Opcode>(p[0]);
  bth.solicited = (p[1] & kSolicitedBit) != 0;
  bth.migrated = (p[1] & kMigratedBit) != 0;
  bth.pad_count = (p[1] >> kPadShift) & 3;
  bth.pkey = LoadBe16(p + 2);
  bth.set_hint(p[4]);
  bth.dest_qpn = Qpn{LoadBe24(p + 4)};
  const uint32_t ack_and_psn = LoadBe32(p + 8);
  bth.ack_request = (ack_and_psn & kAckRequestBit) != 0;
  bth.psn = Psn(ack_and_psn);
}

// Stores two 8-byte words, so that the ICRC's reads that follow are forwarded from the store
// buffer.
void EncodeBth(const Bth& bth, uint8_t* p) {
  const uint32_t flags = (bth.solicited ? kSolicitedBit : 0u) | (bth.migrated ? kMigratedBit : 0u) |
                         static_cast<uint32_t>(bth.pad_count & 3) << kPadShift;
  StoreBe32(p, static_cast<uint32_t>(bth.opcode) << 24 | flags << 16 | bth.pkey);
  StoreBe64(p + 4, static_cast<uint64_t>(bth.hint()) << 56 |
                       static_cast<uint64_t>(bth.dest_qpn.value & 0xFFFFFF) << 32 |
                       (bth.ack_request ? kAckRequestBit : 0u) | bth.psn.value);
}

// Order on the wire: XRCETH first, FETH before RETH, RETH or DETH before ImmDt, AETH before
// AtomicAckETH.
void DecodeExtended(const OpcodeTraits& traits, const uint8_t* p, Headers& headers) {
  if (traits.has_xrceth) {
    headers.xrc_srq = LoadBe24(p);
    p += kXrcethLength;
  }
  if (traits.has_deth) {
    headers.deth.qkey = LoadBe32(p);
    headers.deth.source_qpn = Qpn{LoadBe24(p + 4)};
    p += kDethLength;
  }
  if (traits.has_feth) {
    headers.feth = LoadBe32(p);
    p += kFethLength;
  }
  if (traits.has_reth) {
    headers.reth.address = LoadBe64(p);
    headers.reth.rkey = LoadBe32(p + 8);
    headers.reth.length = LoadBe32(p + 12);
    p += kRethLength;
  }
  if (traits.has_aeth) {
    headers.aeth.syndrome = p[0];
    headers.aeth.msn = LoadBe24(p);
    p += kAethLength;
  }
  if (traits.has_atomic_ack_eth) {
    headers.atomic_ack = LoadBe64(p);
    p += kAtomicAckEthLength;
  }
  if (traits.has_atomic_eth) {
    headers.atomic.address = LoadBe64(p);
    headers.atomic.rkey = LoadBe32(p + 8);
    headers.atomic.swap_or_add = LoadBe64(p + 12);
    headers.atomic.compare = LoadBe64(p + 20);
    p += kAtomicEthLength;
  }
  if (traits.has_immediate) headers.immediate = LoadRaw<uint32_t>(p);
  if (traits.has_invalidate) headers.invalidate_rkey = LoadBe32(p);
}

uint8_t* EncodeExtended(const OpcodeTraits& traits, const Headers& headers, uint8_t* p) {
  if (traits.has_xrceth) {
    StoreBe32(p, headers.xrc_srq & 0xFFFFFF);
    p += kXrcethLength;
  }
  if (traits.has_deth) {
    StoreBe32(p, headers.deth.qkey);
    StoreBe32(p + 4, headers.deth.source_qpn.value & 0xFFFFFF);
    p += kDethLength;
  }
  if (traits.has_feth) {
    StoreBe32(p, headers.feth);
    p += kFethLength;
  }
  if (traits.has_reth) {
    StoreBe64(p, headers.reth.address);
    StoreBe32(p + 8, headers.reth.rkey);
    StoreBe32(p + 12, headers.reth.length);
    p += kRethLength;
  }
  if (traits.has_aeth) {
    StoreBe32(p, uint32_t{headers.aeth.syndrome} << 24 | (headers.aeth.msn & 0xFFFFFF));
    p += kAethLength;
  }
  if (traits.has_atomic_ack_eth) {
    StoreBe64(p, headers.atomic_ack);
    p += kAtomicAckEthLength;
  }
  if (traits.has_atomic_eth) {
    StoreBe64(p, headers.atomic.address);
    StoreBe32(p + 8, headers.atomic.rkey);
    StoreBe64(p + 12, headers.atomic.swap_or_add);
    StoreBe64(p + 20, headers.atomic.compare);
    p += kAtomicEthLength;
  }
  if (traits.has_immediate) {
    StoreRaw(p, headers.immediate);
    p += kImmediateLength;
  }
  if (traits.has_invalidate) {
    StoreBe32(p, headers.invalidate_rkey);
    p += kInvalidateLength;
  }
  if (traits.service == Service::kCnp) {
    std::memset(p, 0, kCnpReservedLength);
    p += kCnpReservedLength;
  }
  return p;
}

}  // namespace

DropReason Decode(const RxDatagram& datagram, RxPacket& out) {
  const size_t size = datagram.bytes.size();
  const uint8_t* p = datagram.bytes.data();
  if (size < kBthLength + kIcrcLength) return DropReason::k_truncated;
  if ((p[1] & kVersionMask) != 0) return DropReason::k_bad_version;
  const OpcodeTraits& traits = TraitsOf(p[0]);
  if (!traits.defined()) return DropReason::k_unknown_opcode;
  const size_t pad = (p[1] >> kPadShift) & 3;
  const size_t covered = size - kIcrcLength;
  if (covered < traits.header_length + pad) return DropReason::k_truncated;
  const size_t region = covered - traits.header_length;
  if (const DropReason reason = CheckPayload(traits, region, pad); reason != DropReason::kNone) {
    return reason;
  }
  if ((LoadBe16(p + 2) & kPkeyBase) != kPkeyBase) return DropReason::k_bad_pkey;
  out.meta = datagram.meta;
  if (!VerifyIcrc(datagram.meta, datagram.bytes, &out.meta.ip_id)) return DropReason::k_bad_icrc;

  out.headers = kNoHeaders;
  DecodeBth(p, out.headers.bth);
  DecodeExtended(traits, p + kBthLength, out.headers);
  out.traits = &traits;
  out.verified = false;
  out.payload = datagram.bytes.subspan(traits.header_length, region - pad);
  return DropReason::kNone;
}

size_t HeaderLength(Opcode opcode) { return TraitsOf(opcode).header_length; }

size_t EncodeHeaders(const Headers& headers, uint8_t* out) {
  EncodeBth(headers.bth, out);
  const OpcodeTraits& traits = TraitsOf(headers.bth.opcode);
  return static_cast<size_t>(EncodeExtended(traits, headers, out + kBthLength) - out);
}

}  // namespace rocegw::wire
