// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/describe/describe.h"

#include <arpa/inet.h>

#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "gateway/wire/byte_order.h"

namespace rocegw::wire {
namespace {

[[gnu::format(printf, 2, 3)]] void Append(std::string& text, const char* format, ...) {
  char piece[160];
  va_list arguments;
  va_start(arguments, format);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is the line above
  std::vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  text += piece;
}

void AppendAddresses(std::string& text, const RxMeta& meta) {
  text += ToString(meta.source);
  text += '>';
  text += ToString(meta.destination);
}

const char* NakName(uint8_t syndrome) {
  switch (static_cast<NakCode>(syndrome)) {
    case NakCode::kPsnSequence:
      return "psn-sequence";
    case NakCode::kInvalidRequest:
      return "invalid-request";
    case NakCode::kRemoteAccess:
      return "remote-access";
    case NakCode::kRemoteOperation:
      return "remote-operation";
    case NakCode::kInvalidRdRequest:
      return "invalid-rd-request";
  }
  return nullptr;
}

void AppendAeth(std::string& text, const Aeth& aeth) {
  text += ' ';
  text += SyndromeText(aeth.syndrome);
  Append(text, " msn=%u", unsigned{aeth.msn});
}

}  // namespace

std::string ToString(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (gid.IsV4()) {
    ::inet_ntop(AF_INET, gid.bytes.data() + 12, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, gid.bytes.data(), text, sizeof text);
  }
  return text;
}

std::string SyndromeText(uint8_t syndrome) {
  const Aeth aeth{.syndrome = syndrome};
  std::string text;
  if (const char* nak = NakName(syndrome); nak != nullptr) {
    Append(text, "nak=%s", nak);
  } else if (aeth.is_rnr()) {
    Append(text, "rnr timer=%u", unsigned{aeth.rnr_timer()});
  } else {
    Append(text, "syndrome=0x%02x", unsigned{syndrome});
  }
  return text;
}

std::string Describe(const RxPacket& packet) {
  const Headers& h = packet.headers;
  const OpcodeTraits& traits = TraitsOf(h.bth.opcode);
  std::string text;
  AppendAddresses(text, packet.meta);
  if (!traits.defined()) {
    Append(text, " opcode=0x%02x", static_cast<unsigned>(h.bth.opcode));
    return text;
  }
  Append(text, " %s qp=0x%06x psn=%u", traits.name, unsigned{h.bth.dest_qpn.value},
         unsigned{h.bth.psn.value});
  if (h.bth.ack_request) text += " ack";
  if (h.bth.solicited) text += " solicited";
  if (h.bth.fecn) text += " fecn";
  if (h.bth.becn) text += " becn";
  if (h.bth.pkey != kDefaultPkey) Append(text, " pkey=0x%04x", unsigned{h.bth.pkey});
  if (traits.has_xrceth) Append(text, " srq=0x%06x", unsigned{h.xrc_srq});
  if (traits.has_deth) {
    Append(text, " from=0x%06x qkey=0x%" PRIx32, unsigned{h.deth.source_qpn.value}, h.deth.qkey);
  }
  if (traits.has_feth) Append(text, " flush=0x%" PRIx32, h.feth);
  if (traits.has_reth) {
    Append(text, " va=0x%" PRIx64 " rkey=0x%" PRIx32 " len=%" PRIu32, h.reth.address, h.reth.rkey,
           h.reth.length);
  }
  if (traits.has_atomic_eth) {
    Append(text, " va=0x%" PRIx64 " rkey=0x%" PRIx32, h.atomic.address, h.atomic.rkey);
    if (traits.operation == Operation::kFetchAdd) {
      Append(text, " add=0x%" PRIx64, h.atomic.swap_or_add);
    } else {
      Append(text, " compare=0x%" PRIx64 " swap=0x%" PRIx64, h.atomic.compare,
             h.atomic.swap_or_add);
    }
  }
  if (traits.has_aeth) AppendAeth(text, h.aeth);
  if (traits.has_atomic_ack_eth) Append(text, " original=0x%" PRIx64, h.atomic_ack);
  if (traits.has_immediate) Append(text, " imm=0x%08" PRIx32, __builtin_bswap32(h.immediate));
  if (traits.has_invalidate) Append(text, " invalidate=0x%" PRIx32, h.invalidate_rkey);
  if (traits.service == Service::kChannel) {
    return text + DescribeChannel(h.bth.opcode, packet.payload);
  }
  if (traits.has_payload) Append(text, " payload=%zu", packet.payload.size());
  return text;
}

std::string Describe(const RxDatagram& datagram) {
  RxPacket packet;
  const metrics::DropReason reason = Decode(datagram, packet);
  if (reason == metrics::DropReason::kNone) return Describe(packet);
  std::string text;
  AppendAddresses(text, datagram.meta);
  const auto bytes = datagram.bytes;
  if (bytes.size() >= kBthLength) {
    const OpcodeTraits& traits = TraitsOf(bytes[0]);
    if (traits.defined()) {
      Append(text, " %s", traits.name);
    } else {
      Append(text, " opcode=0x%02x", unsigned{bytes[0]});
    }
    Append(text, " qp=0x%06x psn=%u", unsigned{LoadBe24(bytes.data() + 4)},
           unsigned{LoadBe24(bytes.data() + 8)});
  }
  Append(text, " %zu bytes dropped: %s", bytes.size(), metrics::DropReasonName(reason));
  return text;
}

}  // namespace rocegw::wire
