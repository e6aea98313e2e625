// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/opcode.h"

#include <array>
#include <cstddef>

#include "gateway/wire/headers.h"

namespace rocegw::wire {
namespace {

enum Content : uint32_t {
  kNothing = 0,
  kRequest = 1u << 0,
  kReth = 1u << 1,
  kAeth = 1u << 2,
  kAtomicEth = 1u << 3,
  kAtomicAckEth = 1u << 4,
  kDeth = 1u << 5,
  kImmediate = 1u << 6,
  kInvalidate = 1u << 7,
  kFeth = 1u << 8,
  kPayload = 1u << 9,
};

struct Row {
  Opcode opcode;
  const char* name;
  Service service;
  Operation operation;
  Position position;
  uint32_t content;
};

using enum Opcode;
using enum Position;
using Op = Operation;

constexpr uint32_t kData = kRequest | kPayload;
constexpr uint32_t kWriteData = kRequest | kReth | kPayload;

constexpr Row kRows[] = {
    {kRcSendFirst, "RC SEND First", Service::kRc, Op::kSend, kFirst, kData},
    {kRcSendMiddle, "RC SEND Middle", Service::kRc, Op::kSend, kMiddle, kData},
    {kRcSendLast, "RC SEND Last", Service::kRc, Op::kSend, kLast, kData},
    {kRcSendLastImm, "RC SEND Last Imm", Service::kRc, Op::kSend, kLast, kData | kImmediate},
    {kRcSendOnly, "RC SEND Only", Service::kRc, Op::kSend, kOnly, kData},
    {kRcSendOnlyImm, "RC SEND Only Imm", Service::kRc, Op::kSend, kOnly, kData | kImmediate},
    {kRcWriteFirst, "RC WRITE First", Service::kRc, Op::kWrite, kFirst, kWriteData},
    {kRcWriteMiddle, "RC WRITE Middle", Service::kRc, Op::kWrite, kMiddle, kData},
    {kRcWriteLast, "RC WRITE Last", Service::kRc, Op::kWrite, kLast, kData},
    {kRcWriteLastImm, "RC WRITE Last Imm", Service::kRc, Op::kWrite, kLast, kData | kImmediate},
    {kRcWriteOnly, "RC WRITE Only", Service::kRc, Op::kWrite, kOnly, kWriteData},
    {kRcWriteOnlyImm, "RC WRITE Only Imm", Service::kRc, Op::kWrite, kOnly,
     kWriteData | kImmediate},
    {kRcReadRequest, "RC READ Request", Service::kRc, Op::kReadRequest, kOnly, kRequest | kReth},
    {kRcReadResponseFirst, "RC READ Response First", Service::kRc, Op::kReadResponse, kFirst,
     kAeth | kPayload},
    {kRcReadResponseMiddle, "RC READ Response Middle", Service::kRc, Op::kReadResponse, kMiddle,
     kPayload},
    {kRcReadResponseLast, "RC READ Response Last", Service::kRc, Op::kReadResponse, kLast,
     kAeth | kPayload},
    {kRcReadResponseOnly, "RC READ Response Only", Service::kRc, Op::kReadResponse, kOnly,
     kAeth | kPayload},
    {kRcAck, "RC ACK", Service::kRc, Op::kAck, kOnly, kAeth},
    {kRcAtomicAck, "RC ATOMIC ACK", Service::kRc, Op::kAtomicAck, kOnly, kAeth | kAtomicAckEth},
    {kRcCompareSwap, "RC Compare Swap", Service::kRc, Op::kCompareSwap, kOnly,
     kRequest | kAtomicEth},
    {kRcFetchAdd, "RC Fetch Add", Service::kRc, Op::kFetchAdd, kOnly, kRequest | kAtomicEth},
    {kRcSendLastInvalidate, "RC SEND Last Invalidate", Service::kRc, Op::kSend, kLast,
     kData | kInvalidate},
    {kRcSendOnlyInvalidate, "RC SEND Only Invalidate", Service::kRc, Op::kSend, kOnly,
     kData | kInvalidate},
    {kRcFlush, "RC FLUSH", Service::kRc, Op::kFlush, kOnly, kRequest | kFeth | kReth},
    {kRcAtomicWrite, "RC ATOMIC WRITE", Service::kRc, Op::kAtomicWrite, kOnly, kWriteData},
    {kUcSendFirst, "UC SEND First", Service::kUc, Op::kSend, kFirst, kData},
    {kUcSendMiddle, "UC SEND Middle", Service::kUc, Op::kSend, kMiddle, kData},
    {kUcSendLast, "UC SEND Last", Service::kUc, Op::kSend, kLast, kData},
    {kUcSendLastImm, "UC SEND Last Imm", Service::kUc, Op::kSend, kLast, kData | kImmediate},
    {kUcSendOnly, "UC SEND Only", Service::kUc, Op::kSend, kOnly, kData},
    {kUcSendOnlyImm, "UC SEND Only Imm", Service::kUc, Op::kSend, kOnly, kData | kImmediate},
    {kUcWriteFirst, "UC WRITE First", Service::kUc, Op::kWrite, kFirst, kWriteData},
    {kUcWriteMiddle, "UC WRITE Middle", Service::kUc, Op::kWrite, kMiddle, kData},
    {kUcWriteLast, "UC WRITE Last", Service::kUc, Op::kWrite, kLast, kData},
    {kUcWriteLastImm, "UC WRITE Last Imm", Service::kUc, Op::kWrite, kLast, kData | kImmediate},
    {kUcWriteOnly, "UC WRITE Only", Service::kUc, Op::kWrite, kOnly, kWriteData},
    {kUcWriteOnlyImm, "UC WRITE Only Imm", Service::kUc, Op::kWrite, kOnly,
     kWriteData | kImmediate},
    {kUdSendOnly, "UD SEND Only", Service::kUd, Op::kSend, kOnly, kData | kDeth},
    {kUdSendOnlyImm, "UD SEND Only Imm", Service::kUd, Op::kSend, kOnly,
     kData | kDeth | kImmediate},
    {kCnp, "CNP", Service::kCnp, Op::kCnp, kOnly, kNothing},
};

constexpr size_t LengthOf(const Row& row) {
  size_t length = kBthLength;
  if (row.content & kReth) length += kRethLength;
  if (row.content & kAeth) length += kAethLength;
  if (row.content & kAtomicEth) length += kAtomicEthLength;
  if (row.content & kAtomicAckEth) length += kAtomicAckEthLength;
  if (row.content & kDeth) length += kDethLength;
  if (row.content & kImmediate) length += kImmediateLength;
  if (row.content & kInvalidate) length += kInvalidateLength;
  if (row.content & kFeth) length += kFethLength;
  if (row.service == Service::kCnp) length += kCnpReservedLength;
  return length;
}

constexpr std::array<OpcodeTraits, 256> MakeTable() {
  std::array<OpcodeTraits, 256> table{};
  for (const Row& row : kRows) {
    OpcodeTraits& t = table[static_cast<uint8_t>(row.opcode)];
    t.name = row.name;
    t.service = row.service;
    t.operation = row.operation;
    t.position = row.position;
    t.is_request = row.content & kRequest;
    t.has_reth = row.content & kReth;
    t.has_aeth = row.content & kAeth;
    t.has_atomic_eth = row.content & kAtomicEth;
    t.has_atomic_ack_eth = row.content & kAtomicAckEth;
    t.has_deth = row.content & kDeth;
    t.has_immediate = row.content & kImmediate;
    t.has_invalidate = row.content & kInvalidate;
    t.has_feth = row.content & kFeth;
    t.has_payload = row.content & kPayload;
    t.header_length = static_cast<uint8_t>(LengthOf(row));
  }
  return table;
}

constexpr std::array<OpcodeTraits, 256> kTable = MakeTable();

constexpr bool FitsMaximum() {
  for (const Row& row : kRows) {
    if (LengthOf(row) > kMaxHeaderLength) return false;
  }
  return true;
}
static_assert(FitsMaximum());

}  // namespace

const OpcodeTraits& TraitsOf(Opcode opcode) { return kTable[static_cast<uint8_t>(opcode)]; }

}  // namespace rocegw::wire
