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
  const char* name;
  uint32_t content;
  Opcode opcode;
  Service service;
  Operation operation;
  Position position;
};

using enum Opcode;
using enum Position;
using Op = Operation;

constexpr uint32_t kData = kRequest | kPayload;
constexpr uint32_t kWriteData = kRequest | kReth | kPayload;

constexpr Row kRows[] = {
    {"RC SEND First", kData, kRcSendFirst, Service::kRc, Op::kSend, kFirst},
    {"RC SEND Middle", kData, kRcSendMiddle, Service::kRc, Op::kSend, kMiddle},
    {"RC SEND Last", kData, kRcSendLast, Service::kRc, Op::kSend, kLast},
    {"RC SEND Last Imm", kData | kImmediate, kRcSendLastImm, Service::kRc, Op::kSend, kLast},
    {"RC SEND Only", kData, kRcSendOnly, Service::kRc, Op::kSend, kOnly},
    {"RC SEND Only Imm", kData | kImmediate, kRcSendOnlyImm, Service::kRc, Op::kSend, kOnly},
    {"RC WRITE First", kWriteData, kRcWriteFirst, Service::kRc, Op::kWrite, kFirst},
    {"RC WRITE Middle", kData, kRcWriteMiddle, Service::kRc, Op::kWrite, kMiddle},
    {"RC WRITE Last", kData, kRcWriteLast, Service::kRc, Op::kWrite, kLast},
    {"RC WRITE Last Imm", kData | kImmediate, kRcWriteLastImm, Service::kRc, Op::kWrite, kLast},
    {"RC WRITE Only", kWriteData, kRcWriteOnly, Service::kRc, Op::kWrite, kOnly},
    {"RC WRITE Only Imm", kWriteData | kImmediate, kRcWriteOnlyImm, Service::kRc, Op::kWrite,
     kOnly},
    {"RC READ Request", kRequest | kReth, kRcReadRequest, Service::kRc, Op::kReadRequest, kOnly},
    {"RC READ Response First", kAeth | kPayload, kRcReadResponseFirst, Service::kRc,
     Op::kReadResponse, kFirst},
    {"RC READ Response Middle", kPayload, kRcReadResponseMiddle, Service::kRc, Op::kReadResponse,
     kMiddle},
    {"RC READ Response Last", kAeth | kPayload, kRcReadResponseLast, Service::kRc,
     Op::kReadResponse, kLast},
    {"RC READ Response Only", kAeth | kPayload, kRcReadResponseOnly, Service::kRc,
     Op::kReadResponse, kOnly},
    {"RC ACK", kAeth, kRcAck, Service::kRc, Op::kAck, kOnly},
    {"RC ATOMIC ACK", kAeth | kAtomicAckEth, kRcAtomicAck, Service::kRc, Op::kAtomicAck, kOnly},
    {"RC Compare Swap", kRequest | kAtomicEth, kRcCompareSwap, Service::kRc, Op::kCompareSwap,
     kOnly},
    {"RC Fetch Add", kRequest | kAtomicEth, kRcFetchAdd, Service::kRc, Op::kFetchAdd, kOnly},
    {"RC SEND Last Invalidate", kData | kInvalidate, kRcSendLastInvalidate, Service::kRc, Op::kSend,
     kLast},
    {"RC SEND Only Invalidate", kData | kInvalidate, kRcSendOnlyInvalidate, Service::kRc, Op::kSend,
     kOnly},
    {"RC FLUSH", kRequest | kFeth | kReth, kRcFlush, Service::kRc, Op::kFlush, kOnly},
    {"RC ATOMIC WRITE", kWriteData, kRcAtomicWrite, Service::kRc, Op::kAtomicWrite, kOnly},
    {"UC SEND First", kData, kUcSendFirst, Service::kUc, Op::kSend, kFirst},
    {"UC SEND Middle", kData, kUcSendMiddle, Service::kUc, Op::kSend, kMiddle},
    {"UC SEND Last", kData, kUcSendLast, Service::kUc, Op::kSend, kLast},
    {"UC SEND Last Imm", kData | kImmediate, kUcSendLastImm, Service::kUc, Op::kSend, kLast},
    {"UC SEND Only", kData, kUcSendOnly, Service::kUc, Op::kSend, kOnly},
    {"UC SEND Only Imm", kData | kImmediate, kUcSendOnlyImm, Service::kUc, Op::kSend, kOnly},
    {"UC WRITE First", kWriteData, kUcWriteFirst, Service::kUc, Op::kWrite, kFirst},
    {"UC WRITE Middle", kData, kUcWriteMiddle, Service::kUc, Op::kWrite, kMiddle},
    {"UC WRITE Last", kData, kUcWriteLast, Service::kUc, Op::kWrite, kLast},
    {"UC WRITE Last Imm", kData | kImmediate, kUcWriteLastImm, Service::kUc, Op::kWrite, kLast},
    {"UC WRITE Only", kWriteData, kUcWriteOnly, Service::kUc, Op::kWrite, kOnly},
    {"UC WRITE Only Imm", kWriteData | kImmediate, kUcWriteOnlyImm, Service::kUc, Op::kWrite,
     kOnly},
    {"UD SEND Only", kData | kDeth, kUdSendOnly, Service::kUd, Op::kSend, kOnly},
    {"UD SEND Only Imm", kData | kDeth | kImmediate, kUdSendOnlyImm, Service::kUd, Op::kSend,
     kOnly},
    {"XRC SEND First", kData, kXrcSendFirst, Service::kXrc, Op::kSend, kFirst},
    {"XRC SEND Middle", kData, kXrcSendMiddle, Service::kXrc, Op::kSend, kMiddle},
    {"XRC SEND Last", kData, kXrcSendLast, Service::kXrc, Op::kSend, kLast},
    {"XRC SEND Last Imm", kData | kImmediate, kXrcSendLastImm, Service::kXrc, Op::kSend, kLast},
    {"XRC SEND Only", kData, kXrcSendOnly, Service::kXrc, Op::kSend, kOnly},
    {"XRC SEND Only Imm", kData | kImmediate, kXrcSendOnlyImm, Service::kXrc, Op::kSend, kOnly},
    {"XRC WRITE First", kWriteData, kXrcWriteFirst, Service::kXrc, Op::kWrite, kFirst},
    {"XRC WRITE Middle", kData, kXrcWriteMiddle, Service::kXrc, Op::kWrite, kMiddle},
    {"XRC WRITE Last", kData, kXrcWriteLast, Service::kXrc, Op::kWrite, kLast},
    {"XRC WRITE Last Imm", kData | kImmediate, kXrcWriteLastImm, Service::kXrc, Op::kWrite, kLast},
    {"XRC WRITE Only", kWriteData, kXrcWriteOnly, Service::kXrc, Op::kWrite, kOnly},
    {"XRC WRITE Only Imm", kWriteData | kImmediate, kXrcWriteOnlyImm, Service::kXrc, Op::kWrite,
     kOnly},
    {"XRC READ Request", kRequest | kReth, kXrcReadRequest, Service::kXrc, Op::kReadRequest, kOnly},
    {"XRC READ Response First", kAeth | kPayload, kXrcReadResponseFirst, Service::kXrc,
     Op::kReadResponse, kFirst},
    {"XRC READ Response Middle", kPayload, kXrcReadResponseMiddle, Service::kXrc, Op::kReadResponse,
     kMiddle},
    {"XRC READ Response Last", kAeth | kPayload, kXrcReadResponseLast, Service::kXrc,
     Op::kReadResponse, kLast},
    {"XRC READ Response Only", kAeth | kPayload, kXrcReadResponseOnly, Service::kXrc,
     Op::kReadResponse, kOnly},
    {"XRC ACK", kAeth, kXrcAck, Service::kXrc, Op::kAck, kOnly},
    {"XRC ATOMIC ACK", kAeth | kAtomicAckEth, kXrcAtomicAck, Service::kXrc, Op::kAtomicAck, kOnly},
    {"XRC Compare Swap", kRequest | kAtomicEth, kXrcCompareSwap, Service::kXrc, Op::kCompareSwap,
     kOnly},
    {"XRC Fetch Add", kRequest | kAtomicEth, kXrcFetchAdd, Service::kXrc, Op::kFetchAdd, kOnly},
    {"XRC SEND Last Invalidate", kData | kInvalidate, kXrcSendLastInvalidate, Service::kXrc,
     Op::kSend, kLast},
    {"XRC SEND Only Invalidate", kData | kInvalidate, kXrcSendOnlyInvalidate, Service::kXrc,
     Op::kSend, kOnly},
    {"CNP", kNothing, kCnp, Service::kCnp, Op::kCnp, kOnly},
    {"CH Frame", kData, kChannelFrame, Service::kChannel, Op::kChannelFrame, kOnly},
    {"CH Ack", kPayload, kChannelAck, Service::kChannel, Op::kChannelAck, kOnly},
    {"CH Control", kPayload, kChannelControl, Service::kChannel, Op::kChannelControl, kOnly},
    {"CH Bundle", kData, kChannelBundle, Service::kChannel, Op::kChannelBundle, kOnly},
    {"CH Sealed", kData, kChannelSealed, Service::kChannel, Op::kChannelSealed, kOnly},
};

// Returns true if the packet carries an XRCETH: every request of XRC, whatever part of its message
// it is (IBTA annex A14).
constexpr bool NamesSrq(const Row& row) {
  return row.service == Service::kXrc && (row.content & kRequest) != 0;
}

constexpr size_t LengthOf(const Row& row) {
  size_t length = kBthLength;
  if (NamesSrq(row)) length += kXrcethLength;
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
    t.has_xrceth = NamesSrq(row);
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
