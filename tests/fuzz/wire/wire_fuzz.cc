// SPDX-License-Identifier: Apache-2.0
// Any datagram through Decode, Encode and Describe. Input: one byte of options, then the datagram.
// Option bit 0: IPv6; bit 1: the IPv4 ID is known; bit 2: the last four bytes are replaced by the
// right ICRC, so that mutation gets past it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"
#include "gateway/wire/crc/icrc.h"
#include "gateway/wire/describe/describe.h"

namespace {

using namespace rocegw::wire;  // NOLINT(google-build-using-namespace): one file, one purpose
using rocegw::metrics::DropReason;

void Check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

void CheckPacket(const RxDatagram& datagram, const RxPacket& packet) {
  const OpcodeTraits& traits = TraitsOf(datagram.bytes[0]);
  Check(packet.traits == &traits && traits.defined(), "traits are those of the opcode");
  const size_t pad = packet.headers.bth.pad_count;
  Check(traits.header_length + packet.payload.size() + pad + kIcrcLength == datagram.bytes.size(),
        "headers, payload, pad and ICRC are the datagram");
  Check(packet.payload.empty() ||
            packet.payload.data() == datagram.bytes.data() + traits.header_length,
        "the payload lies behind the headers");
  const bool is_sealed = traits.operation == Operation::kChannelSealed;
  const size_t extension =
      (traits.service == Service::kChannel ? kMaxFrameLength : 0) + (is_sealed ? kSealLength : 0);
  Check(packet.payload.size() <= kMaxPayload + extension, "no payload above the largest MTU");

  // Reserved bits are not kept; decoding what was encoded must give the same values again.
  std::vector<uint8_t> again(datagram.bytes.begin(), datagram.bytes.end());
  Check(EncodeHeaders(packet.headers, again.data()) == traits.header_length, "encoded length");
  Path path;
  path.source = datagram.meta.source;
  path.destination = datagram.meta.destination;
  path.source_port = datagram.meta.source_port;
  SealIcrc(path, packet.meta.ip_id, again.data(), again.size() - kIcrcLength);
  RxPacket second;
  RxDatagram sealed = datagram;
  sealed.bytes = again;
  Check(Decode(sealed, second) == DropReason::kNone, "what was encoded decodes");
  Check(Describe(second) == Describe(packet), "and means the same");
  Check(second.meta.ip_id == packet.meta.ip_id, "with the same IP ID");
  std::vector<uint8_t> third(kMaxHeaderLength);
  third.resize(EncodeHeaders(second.headers, third.data()));
  Check(std::memcmp(third.data(), again.data(), third.size()) == 0, "encoding is stable");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const uint8_t options = data[0];
  // A copy of its own, so that a read beyond its end is seen.
  std::vector<uint8_t> bytes(data + 1, data + size);
  bytes.shrink_to_fit();
  RxDatagram datagram;
  if ((options & 1) != 0) {
    datagram.meta.source.bytes[15] = datagram.meta.destination.bytes[0] = 1;
  } else {
    datagram.meta.source = Gid::FromV4(0xC0000201);
    datagram.meta.destination = Gid::FromV4(0xC0000202);
    datagram.meta.ip_id_known = (options & 2) != 0;
    datagram.meta.ip_id = datagram.meta.ip_id_known ? 0x1234 : 0;
  }
  datagram.meta.source_port = 0xC123;
  if ((options & 4) != 0 && bytes.size() >= kBthLength + kIcrcLength) {
    Path path;
    path.source = datagram.meta.source;
    path.destination = datagram.meta.destination;
    path.source_port = datagram.meta.source_port;
    SealIcrc(path, 0x1234, bytes.data(), bytes.size() - kIcrcLength);
  }
  datagram.bytes = bytes;
  RxPacket packet;
  const DropReason reason = Decode(datagram, packet);
  Check(!Describe(datagram).empty(), "every datagram can be described");
  if (reason == DropReason::kNone) CheckPacket(datagram, packet);
  return 0;
}
