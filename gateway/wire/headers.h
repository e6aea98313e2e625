// SPDX-License-Identifier: Apache-2.0
// BTH and extended headers as host-order values (IBTA chapter 9). The opcode's traits say which
// headers a packet carries.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/wire/opcode.h"

namespace rocegw::wire {

inline constexpr size_t kBthLength = 12;
inline constexpr size_t kRethLength = 16;
inline constexpr size_t kAethLength = 4;
inline constexpr size_t kAtomicEthLength = 28;
inline constexpr size_t kAtomicAckEthLength = 8;
inline constexpr size_t kDethLength = 8;
inline constexpr size_t kImmediateLength = 4;
inline constexpr size_t kInvalidateLength = 4;
inline constexpr size_t kFethLength = 4;
inline constexpr size_t kXrcethLength = 4;
// Reserved bytes of a CNP, all zero. They count as header: a CNP has no payload.
inline constexpr size_t kCnpReservedLength = 16;
inline constexpr size_t kIcrcLength = 4;
// Largest path MTU: no packet carries more payload.
inline constexpr size_t kMaxPayload = 4096;
// Bytes behind the content of a sealed datagram of a channel (seal/sealed_datagram.h).
inline constexpr size_t kSealLength = 36;
// Longest headers: BTH, XRCETH, RETH and ImmDt have 36 bytes; BTH, XRCETH and AtomicETH 44.
inline constexpr size_t kMaxHeaderLength = 44;
inline constexpr uint16_t kDefaultPkey = 0xFFFF;
inline constexpr uint32_t kGsiQkey = 0x80010000;

struct Bth {
  Opcode opcode = Opcode::kRcSendOnly;
  bool solicited = false;
  bool migrated = true;  // MigReq: RNICs send 1 on data, 0 on CNPs
  uint8_t pad_count = 0;
  uint16_t pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  uint8_t level =
      0;  // six bits: level of a channel frame's hint (congestion_hint.h), else reserved
  Qpn dest_qpn;
  bool ack_request = false;
  Psn psn;

  // Returns byte 4 of the BTH, which carries a channel frame's hint.
  uint8_t hint() const {
    return static_cast<uint8_t>((fecn ? 0x80 : 0) | (becn ? 0x40 : 0) | level);
  }
  void set_hint(uint8_t hint) {
    fecn = (hint & 0x80) != 0;
    becn = (hint & 0x40) != 0;
    level = hint & 0x3F;
  }
};

struct Reth {
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t length = 0;  // length of the whole (remaining) message, not of the packet
};

struct AtomicEth {
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint64_t swap_or_add = 0;
  uint64_t compare = 0;
};

// Syndrome: bits 6:5 kind, bits 4:0 credits, RNR timer or NAK code (IBTA 9.7.5.1.1, table 45).
inline constexpr uint8_t kSyndromeAck = 0x1F;  // ACK without end-to-end credits
inline constexpr uint8_t kSyndromeRnr = 0x20;  // low bits: timer code
enum class NakCode : uint8_t {
  kPsnSequence = 0x60,
  kInvalidRequest = 0x61,
  kRemoteAccess = 0x62,
  kRemoteOperation = 0x63,
  kInvalidRdRequest = 0x64,
};
constexpr uint8_t SyndromeOf(NakCode code) { return static_cast<uint8_t>(code); }

// FETH (IBTA annex A19): the required effect of a FLUSH, and its range.
inline constexpr uint32_t kFlushTypeMask = 0x0F;
inline constexpr uint32_t kFlushGlobal = 0x01;      // global visibility
inline constexpr uint32_t kFlushPersistent = 0x02;  // persistence across power loss
inline constexpr uint32_t kFlushLevelMask = 0x30;
inline constexpr uint32_t kFlushRange = 0x00;
inline constexpr uint32_t kFlushRegion = 0x10;  // the whole memory region of the key

struct Aeth {
  uint8_t syndrome = kSyndromeAck;
  uint32_t msn = 0;  // 24 bits

  bool is_ack() const { return (syndrome & 0x60) == 0; }
  bool is_rnr() const { return (syndrome & 0x60) == 0x20; }
  bool is_nak() const { return (syndrome & 0x60) == 0x60; }
  uint8_t rnr_timer() const { return syndrome & 0x1F; }
};

struct Deth {
  uint32_t qkey = 0;
  Qpn source_qpn;
};

struct Headers {
  Bth bth;
  uint32_t xrc_srq = 0;  // 24 bits: shared receive queue of the request
  Reth reth;
  AtomicEth atomic;
  uint64_t atomic_ack = 0;  // original value of the remote operand
  Aeth aeth;
  Deth deth;
  uint32_t immediate = 0;  // opaque: the bytes in wire order
  uint32_t invalidate_rkey = 0;
  uint32_t feth = 0;
};

}  // namespace rocegw::wire
