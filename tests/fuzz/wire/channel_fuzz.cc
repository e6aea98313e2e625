// SPDX-License-Identifier: Apache-2.0
// Any bytes as a channel extension. Input: one byte that chooses frame, acknowledgement, control,
// bundle or sealed datagram, then what lies between BTH and pad. What decodes must encode to the
// same bytes, and can be described.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gateway/wire/channel_bundle.h"
#include "gateway/wire/channel_header.h"
#include "gateway/wire/describe/describe.h"
#include "gateway/wire/seal/sealed_datagram.h"

namespace {

using namespace rocegw::wire;  // NOLINT(google-build-using-namespace): one file, one purpose
using rocegw::metrics::DropReason;

void Check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

void CheckFrame(std::span<const uint8_t> body) {
  ChannelFrame frame;
  std::span<const uint8_t> payload;
  if (DecodeFrame(body, frame, payload) != DropReason::kNone) return;
  Check(payload.size() <= kMaxPayload, "no payload above the largest MTU");
  Check(frame.kind == FrameKind::kReadRequest || payload.size() <= frame.length, "payload fits");
  uint8_t again[kMaxFrameLength];
  const size_t length = EncodeFrame(frame, again);
  Check(length + payload.size() == body.size(), "header and payload are the body");
  Check(payload.empty() || payload.data() == body.data() + length, "the payload is behind");
  Check(std::memcmp(again, body.data(), length) == 0, "a frame is canonical");
}

void CheckAck(std::span<const uint8_t> body) {
  ChannelAck ack;
  if (DecodeAck(body, ack) != DropReason::kNone) return;
  Check(ack.words <= kMaxBitmapWords && ack.room <= 0xFFFFFF, "within bounds");
  std::vector<uint8_t> again(kChannelAckLength + kMaxBitmapWords * 4);
  Check(EncodeAck(ack, again.data()) == body.size(), "length of an acknowledgement");
  Check(std::memcmp(again.data(), body.data(), body.size()) == 0,
        "an acknowledgement is canonical");
}

void CheckControl(std::span<const uint8_t> body) {
  ChannelControl control;
  if (DecodeControl(body, control) != DropReason::kNone) return;
  uint8_t again[kMaxControlLength];
  Check(EncodeControl(control, again) == body.size(), "length of a control packet");
  Check(std::memcmp(again, body.data(), body.size()) == 0, "a control packet is canonical");
}

void CheckBundleOf(std::span<const uint8_t> content) {
  if (CheckBundle(content) != DropReason::kNone) return;
  // The bundle is built again from its entries, each as a datagram of its own.
  std::vector<uint8_t> bth(kBthLength);
  bth[0] = static_cast<uint8_t>(Opcode::kChannelBundle);
  std::vector<uint8_t> again(kBthLength + content.size() + kMaxBundle);
  size_t length = 0;
  std::span<const uint8_t> rest = content;
  BundleEntry entry;
  while (TakeEntry(rest, entry)) {
    Check(!entry.body.empty(), "no entry is empty");
    if (entry.opcode == Opcode::kChannelFrame) CheckFrame(entry.body);
    if (entry.opcode == Opcode::kChannelAck) CheckAck(entry.body);
    std::vector<uint8_t> alone;
    alone.resize(UnbundleTo(bth, entry, alone));
    Check(MayBundle(alone), "an entry may be bundled");
    if (length != 0) {
      length = AppendToBundle(again.data(), length, alone);
      continue;
    }
    again.resize(again.size() + alone.size());
    std::memcpy(again.data(), alone.data(), alone.size());
    length = BeginBundle(again.data(), alone.size());
  }
  Check(length == kBthLength + content.size(), "length of a bundle");
  Check(std::memcmp(again.data() + kBthLength, content.data(), content.size()) == 0,
        "a bundle is canonical");
}

void CheckSealed(std::span<const uint8_t> body) {
  RxPacket packet;
  packet.payload = body;
  SealedParts parts;
  if (DecodeSealed(packet, parts) != DropReason::kNone) return;
  Check(parts.content.size() + kSealLength == body.size(), "content and trailer are the body");
  Check(parts.tag.data() + parts.tag.size() == body.data() + body.size(), "the tag is the end");
  const RxPacket inner = Unsealed(packet, parts.trailer, parts.content);
  Check(!inner.payload.empty() && inner.payload.size() <= parts.content.size(), "content is there");
  // The datagram is sealed again from what it was without the seal.
  std::vector<uint8_t> again(kBthLength + body.size());
  Headers headers;
  headers.bth.opcode = parts.trailer.inner;
  headers.bth.pad_count = parts.trailer.pad;
  EncodeHeaders(headers, again.data());
  std::memcpy(again.data() + kBthLength, parts.content.data(), parts.content.size());
  std::memcpy(again.data() + again.size() - parts.tag.size(), parts.tag.data(), parts.tag.size());
  BeginSeal({}, parts.trailer, again.data(), kBthLength + parts.content.size());
  Check(std::memcmp(again.data() + kBthLength, body.data(), body.size()) == 0,
        "a sealed datagram is canonical");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto opcode = static_cast<Opcode>(0xC0 + data[0] % 5);
  // A copy of its own, so that a read beyond its end is seen.
  std::vector<uint8_t> body(data + 1, data + size);
  body.shrink_to_fit();
  Check(!DescribeChannel(opcode, body).empty(), "every extension can be described");
  if (opcode == Opcode::kChannelFrame) CheckFrame(body);
  if (opcode == Opcode::kChannelAck) CheckAck(body);
  if (opcode == Opcode::kChannelControl) CheckControl(body);
  if (opcode == Opcode::kChannelBundle) CheckBundleOf(body);
  if (opcode == Opcode::kChannelSealed) CheckSealed(body);
  return 0;
}
