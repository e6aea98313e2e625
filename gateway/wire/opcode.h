// SPDX-License-Identifier: Apache-2.0
// Table of all BTH opcodes (IBTA table 38): service, position in the message, extended headers,
// payload. Code looks up the traits instead of switching over numbers.
#pragma once

#include <cstdint>

namespace rocegw::wire {

enum class Opcode : uint8_t {
  kRcSendFirst = 0x00,
  kRcSendMiddle = 0x01,
  kRcSendLast = 0x02,
  kRcSendLastImm = 0x03,
  kRcSendOnly = 0x04,
  kRcSendOnlyImm = 0x05,
  kRcWriteFirst = 0x06,
  kRcWriteMiddle = 0x07,
  kRcWriteLast = 0x08,
  kRcWriteLastImm = 0x09,
  kRcWriteOnly = 0x0A,
  kRcWriteOnlyImm = 0x0B,
  kRcReadRequest = 0x0C,
  kRcReadResponseFirst = 0x0D,
  kRcReadResponseMiddle = 0x0E,
  kRcReadResponseLast = 0x0F,
  kRcReadResponseOnly = 0x10,
  kRcAck = 0x11,
  kRcAtomicAck = 0x12,
  kRcCompareSwap = 0x13,
  kRcFetchAdd = 0x14,
  kRcSendLastInvalidate = 0x16,
  kRcSendOnlyInvalidate = 0x17,
  kRcFlush = 0x1C,
  kRcAtomicWrite = 0x1D,
  kUcSendFirst = 0x20,
  kUcSendMiddle = 0x21,
  kUcSendLast = 0x22,
  kUcSendLastImm = 0x23,
  kUcSendOnly = 0x24,
  kUcSendOnlyImm = 0x25,
  kUcWriteFirst = 0x26,
  kUcWriteMiddle = 0x27,
  kUcWriteLast = 0x28,
  kUcWriteLastImm = 0x29,
  kUcWriteOnly = 0x2A,
  kUcWriteOnlyImm = 0x2B,
  kUdSendOnly = 0x64,
  kUdSendOnlyImm = 0x65,
  kCnp = 0x81,
  kXrcSendFirst = 0xA0,
  kXrcSendMiddle = 0xA1,
  kXrcSendLast = 0xA2,
  kXrcSendLastImm = 0xA3,
  kXrcSendOnly = 0xA4,
  kXrcSendOnlyImm = 0xA5,
  kXrcWriteFirst = 0xA6,
  kXrcWriteMiddle = 0xA7,
  kXrcWriteLast = 0xA8,
  kXrcWriteLastImm = 0xA9,
  kXrcWriteOnly = 0xAA,
  kXrcWriteOnlyImm = 0xAB,
  kXrcReadRequest = 0xAC,
  kXrcReadResponseFirst = 0xAD,
  kXrcReadResponseMiddle = 0xAE,
  kXrcReadResponseLast = 0xAF,
  kXrcReadResponseOnly = 0xB0,
  kXrcAck = 0xB1,
  kXrcAtomicAck = 0xB2,
  kXrcCompareSwap = 0xB3,
  kXrcFetchAdd = 0xB4,
  kXrcSendLastInvalidate = 0xB6,
  kXrcSendOnlyInvalidate = 0xB7,
  // Manufacturer range: between gateways only (channel_header.h).
  kChannelFrame = 0xC0,
  kChannelAck = 0xC1,
  kChannelControl = 0xC2,
  kChannelBundle = 0xC3,  // channel_bundle.h
  kChannelSealed = 0xC4,  // seal/sealed_datagram.h
};

enum class Service : uint8_t { kRc, kUc, kUd, kXrc, kCnp, kChannel, kNone };

enum class Operation : uint8_t {
  kSend,
  kWrite,
  kReadRequest,
  kReadResponse,
  kAck,
  kAtomicAck,
  kCompareSwap,
  kFetchAdd,
  kFlush,
  kAtomicWrite,
  kCnp,
  kChannelFrame,
  kChannelAck,
  kChannelControl,
  kChannelBundle,
  kChannelSealed,
  kNone,
};

enum class Position : uint8_t { kFirst, kMiddle, kLast, kOnly };

struct OpcodeTraits {
  const char* name = nullptr;  // "RC SEND First"; nullptr: not a defined opcode
  Service service = Service::kNone;
  Operation operation = Operation::kNone;
  Position position = Position::kOnly;
  bool is_request = false;
  bool has_xrceth = false;
  bool has_reth = false;
  bool has_aeth = false;
  bool has_atomic_eth = false;
  bool has_atomic_ack_eth = false;
  bool has_deth = false;
  bool has_immediate = false;
  bool has_invalidate = false;  // IETH
  bool has_feth = false;
  bool has_payload = false;
  // Length of BTH and extended headers in bytes. A channel's extension counts as payload: it states
  // its own length.
  uint8_t header_length = 0;

  bool defined() const { return name != nullptr; }
  bool starts_message() const {
    return position == Position::kFirst || position == Position::kOnly;
  }
  bool ends_message() const { return position == Position::kLast || position == Position::kOnly; }
};

// Returns the traits of any opcode; those of an undefined opcode are not defined().
const OpcodeTraits& TraitsOf(Opcode opcode);
inline const OpcodeTraits& TraitsOf(uint8_t opcode) {
  return TraitsOf(static_cast<Opcode>(opcode));
}

}  // namespace rocegw::wire
