// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/crc/icrc.h"

#include "gateway/base/invariant.h"
#include "gateway/wire/byte_order.h"
#include "gateway/wire/crc/crc32.h"
#include "gateway/wire/headers.h"

namespace rocegw::wire {
namespace {

// Bytes of the IPv4 and UDP headers behind the ID field.
constexpr size_t kBehindIpId = 14 + 8;

}  // namespace

void SealIcrc(const Path& path, uint16_t ip_id, uint8_t* datagram, size_t length,
              const KnownCrc& known) {
  const crc32::Kernel& kernel = crc32::ActiveKernel();
  const FrameFields fields{&path.source,         &path.destination, datagram,
                           length + kIcrcLength, path.source_port,  ip_id};
  const uint8_t* rest = datagram + kBthLength;
  uint32_t state;
  if (known.length == 0 || !ROCEGW_INVARIANT(known.offset >= kBthLength && known.offset <= length &&
                                                 known.length <= length - known.offset,
                                             "seal-known-range")) {
    state = kernel.cover(fields, rest, length - kBthLength, 0);
  } else {
    const size_t end = known.offset + known.length;
    state = kernel.cover(fields, rest, known.offset - kBthLength, known.length) ^ known.crc;
    if (end != length) state = kernel.update(state, datagram + end, length - end);
  }
  StoreRaw(datagram + length, ~state);
}

void SealIcrcAround(const Path& path, uint16_t ip_id, uint8_t* datagram, size_t length,
                    const OutsidePart& outside) {
  const size_t end = size_t{outside.offset} + outside.length;
  if (!ROCEGW_INVARIANT(outside.offset >= kBthLength && end <= length, "seal-outside-range"))
    return;
  const crc32::Kernel& kernel = crc32::ActiveKernel();
  const FrameFields fields{&path.source,         &path.destination, datagram,
                           length + kIcrcLength, path.source_port,  ip_id};
  uint32_t state =
      kernel.cover(fields, datagram + kBthLength, outside.offset - kBthLength, /*zeros=*/0);
  state = kernel.update(state, outside.bytes, outside.length);
  if (end != length) state = kernel.update(state, datagram + end, length - end);
  StoreRaw(datagram + length, ~state);
}

bool VerifyIcrc(const RxMeta& meta, std::span<const uint8_t> datagram, uint16_t* ip_id) {
  *ip_id = meta.ip_id;
  if (datagram.size() < kBthLength + kIcrcLength) return false;
  const crc32::Kernel& kernel = crc32::ActiveKernel();
  const size_t length = datagram.size() - kIcrcLength;
  const bool search = !meta.ip_id_known && meta.destination.IsV4();
  const uint16_t assumed_id = search ? 0 : meta.ip_id;
  const FrameFields fields{&meta.source,    &meta.destination, datagram.data(),
                           datagram.size(), meta.source_port,  assumed_id};
  const uint32_t state = kernel.cover(fields, datagram.data() + kBthLength, length - kBthLength, 0);
  const uint32_t difference = ~state ^ LoadRaw<uint32_t>(datagram.data() + length);
  if (!search) return difference == 0;
  // The ID contributes its 16 bits times a power of x that depends on the length only. Divided by
  // that power, a valid difference is again a polynomial of 16 bits.
  const uint32_t id = kernel.multiply(difference, crc32::UnshiftFactor(kBehindIpId + length));
  *ip_id = __builtin_bswap16(static_cast<uint16_t>(id >> 16));
  return static_cast<uint16_t>(id) == 0;
}

}  // namespace rocegw::wire
