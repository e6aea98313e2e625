// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/gateway_mad.h"

#include <algorithm>
#include <cstdio>

#include "gateway/wire/byte_order.h"

namespace rocegw::wire {
namespace {

using metrics::DropReason;

constexpr uint8_t kMadBaseVersion = 1;
constexpr uint8_t kGatewayClassVersion = 1;
constexpr uint8_t kMethodGet = 0x01;
constexpr uint8_t kMethodGetResponse = 0x81;

// Offsets in the MAD. The RMPP header (24 to 35) is 0: no segmentation.
constexpr size_t kOuiAt = 37;
constexpr size_t kVersionAt = 40;
constexpr size_t kWorkersAt = 41;
constexpr size_t kInstanceAt = 44;
constexpr size_t kEpochAt = 48;
constexpr size_t kFeaturesAt = 52;
constexpr size_t kWindowAt = 56;
constexpr size_t kAcceptorsAt = 60;
constexpr size_t kQpnLength = 3;
static_assert(kAcceptorsAt + kMostGatewayWorkers * kQpnLength <= kMadLength);

constexpr const char* kOptionNames[] = {
    "",
    "channel",
    "selective acknowledgement",
    "frames without ICRC",
    "ordering on request",
    "endpoints",
    "invalidation",
    "memory placement",
    "static window",
    "DCQCN",
    "DCTCP",
    "proportional hints",
    "RTT-based control",
    nullptr,
    nullptr,
    nullptr,
    "READs and atomics of endpoints",
    "authentication",
    "bundles",
    "sealed frames",
    "further atomics",
};

uint32_t Load24(const uint8_t* from) {
  return uint32_t{from[0]} << 16 | uint32_t{from[1]} << 8 | from[2];
}
void Store24(uint8_t* to, uint32_t value) {
  for (int i = 0; i < 3; ++i) to[i] = static_cast<uint8_t>(value >> (16 - 8 * i));
}

// Congestion control kinds, best first: the one that needs least from the network and most from the
// peer.
constexpr uint32_t kPreferredCc[] = {kOptionCcHint, kOptionCcRtt, kOptionCcDctcp, kOptionCcDcqcn,
                                     kOptionCcStatic};

bool GoodQpn(Qpn qpn) { return qpn.value > kGsiQpn.value && qpn.value < kMulticastQpn.value; }

DropReason ReadInfo(const uint8_t* mad, GatewayInfo& info) {
  info.version = mad[kVersionAt];
  info.workers = mad[kWorkersAt];
  info.instance = LoadBe32(mad + kInstanceAt);
  info.epoch = LoadBe32(mad + kEpochAt);
  info.features = LoadBe32(mad + kFeaturesAt);
  info.window = LoadBe32(mad + kWindowAt);
  info.acceptors = {};
  if (info.version == 0 || info.workers == 0 || info.workers > kMostGatewayWorkers ||
      info.instance == 0 || (info.features & kOptionPresent) == 0) {
    return DropReason::k_mad_malformed;
  }
  if ((info.features & kOptionChannel) == 0) return DropReason::kNone;
  for (uint32_t worker = 0; worker < info.workers; ++worker) {
    const Qpn acceptor{Load24(mad + kAcceptorsAt + kQpnLength * worker)};
    if (!GoodQpn(acceptor) || info.WorkerOf(acceptor) != worker) return DropReason::k_mad_malformed;
    info.acceptors[worker] = acceptor;
  }
  return DropReason::kNone;
}

void WriteInfo(const GatewayInfo& info, uint8_t* mad) {
  mad[kVersionAt] = info.version;
  mad[kWorkersAt] = info.workers;
  StoreBe32(mad + kInstanceAt, info.instance);
  StoreBe32(mad + kEpochAt, info.epoch);
  StoreBe32(mad + kFeaturesAt, info.features);
  StoreBe32(mad + kWindowAt, info.window);
  if ((info.features & kOptionChannel) == 0) return;
  for (uint32_t worker = 0; worker < std::min<uint32_t>(info.workers, kMostGatewayWorkers);
       ++worker) {
    Store24(mad + kAcceptorsAt + kQpnLength * worker, info.acceptors[worker].value);
  }
}

}  // namespace

uint32_t AgreedOptions(uint32_t common) {
  constexpr uint32_t kNeeded = kOptionChannel | kOptionSelectiveAck;
  if ((common & kNeeded) != kNeeded) return 0;
  const uint32_t chosen = (common & ~kOptionCcMask) | kOptionPresent;
  for (const uint32_t kind : kPreferredCc) {
    if ((common & kind) != 0) return chosen | kind;
  }
  return chosen;
}

const char* OptionName(uint32_t bit) {
  for (size_t i = 0; i < std::size(kOptionNames); ++i) {
    if (bit == 1u << i) return kOptionNames[i];
  }
  return nullptr;
}

bool IsVendorMad(std::span<const uint8_t> bytes) {
  return bytes.size() == kMadLength && IsVendorClass(bytes[1]);
}

DropReason DecodeGatewayMad(std::span<const uint8_t> bytes, uint32_t oui, GatewayMad& out) {
  if (bytes.size() != kMadLength || bytes[0] != kMadBaseVersion) return DropReason::k_mad_malformed;
  const uint8_t* const mad = bytes.data();
  if (mad[1] != kMadClassGateway || Load24(mad + kOuiAt) != oui)
    return DropReason::k_mad_unknown_class;
  if (mad[2] != kGatewayClassVersion) return DropReason::k_mad_malformed;
  if (mad[3] != kMethodGet && mad[3] != kMethodGetResponse) return DropReason::k_mad_malformed;
  if (LoadBe16(mad + 16) != kAttributeGatewayInfo) return DropReason::k_mad_unknown_class;
  out.response = mad[3] == kMethodGetResponse;
  out.status = out.response ? LoadBe16(mad + 4) : 0;
  out.transaction_id = LoadBe64(mad + 8);
  out.info = {};
  out.tagged = false;
  out.tag = 0;
  if (out.status != 0) return DropReason::kNone;
  out.tagged = mad[kMadTaggedAt] == 1;
  if (out.tagged)
    out.tag = uint64_t{LoadBe32(mad + kMadTagHighAt)} << 32 | LoadBe32(mad + kMadTagLowAt);
  return ReadInfo(mad, out.info);
}

void EncodeGatewayMad(const GatewayMad& mad, uint32_t oui, std::span<uint8_t, kMadLength> out) {
  std::fill(out.begin(), out.end(), uint8_t{0});
  uint8_t* const to = out.data();
  to[0] = kMadBaseVersion;
  to[1] = kMadClassGateway;
  to[2] = kGatewayClassVersion;
  to[3] = mad.response ? kMethodGetResponse : kMethodGet;
  StoreBe16(to + 4, mad.response ? mad.status : 0);
  StoreBe64(to + 8, mad.transaction_id);
  StoreBe16(to + 16, kAttributeGatewayInfo);
  Store24(to + kOuiAt, oui);
  if (mad.response && mad.status != 0) return;
  WriteInfo(mad.info, to);
  if (!mad.tagged) return;
  to[kMadTaggedAt] = 1;
  StoreBe32(to + kMadTagHighAt, static_cast<uint32_t>(mad.tag >> 32));
  StoreBe32(to + kMadTagLowAt, static_cast<uint32_t>(mad.tag));
}

bool RefuseMad(std::span<const uint8_t> bytes, std::span<uint8_t, kMadLength> out) {
  // Answers requests only: an answer to an answer would loop.
  if (bytes.size() != kMadLength || bytes[0] != kMadBaseVersion || bytes[3] != kMethodGet)
    return false;
  std::copy(bytes.begin(), bytes.end(), out.begin());
  out[3] = kMethodGetResponse;
  StoreBe16(out.data() + 4, kMadStatusUnsupported);
  return true;
}

std::string OptionText(uint32_t options) {
  std::string text;
  for (size_t i = 1; i < 32; ++i) {
    const uint32_t bit = options & (1u << i);
    if (bit == 0) continue;
    if (!text.empty()) text += ", ";
    const char* const name = OptionName(bit);
    text += name != nullptr ? name : "bit " + std::to_string(i);
  }
  return text.empty() ? "nothing" : text;
}

std::string Describe(const GatewayInfo& info) {
  char text[96];
  std::snprintf(text, sizeof text,
                "gateway 0x%08x/%u workers=%u window=%u options=0x%x: ", info.instance, info.epoch,
                unsigned{info.workers}, info.window, info.features);
  return text + OptionText(info.features);
}

}  // namespace rocegw::wire
