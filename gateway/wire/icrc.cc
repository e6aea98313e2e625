// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/icrc.h"

#include "gateway/wire/byte_order.h"
#include "gateway/wire/crc32.h"
#include "gateway/wire/headers.h"

namespace rocegw::wire {
namespace {

constexpr size_t kIpv4Length = 20;
constexpr size_t kUdpLength = 8;
// Bytes of the IPv4 and UDP headers behind the ID field.
constexpr size_t kBehindIpId = kIpv4Length - 6 + kUdpLength;

struct Addresses {
  const Gid& source;
  const Gid& destination;
  uint16_t source_port;
};

constexpr uint64_t Low32(uint64_t value) { return value & 0xFFFFFFFF; }
uint64_t Be16(size_t value) { return __builtin_bswap16(static_cast<uint16_t>(value)); }

// What the ICRC covers up to and with the BTH, as 64 bytes with zeros in front. The state before
// the last four of the eight 0xFF bytes is 0: the first four cancel the initial state. `size`
// counts the ICRC itself.
void Frame(const Addresses& addresses, uint16_t ip_id, const uint8_t* bth, size_t size,
           crc32::Preamble& frame) {
  const uint8_t* source = addresses.source.bytes.data();
  const uint8_t* destination = addresses.destination.bytes.data();
  const uint64_t ports = Be16(addresses.source_port) | Be16(kRocePort) << 16;
  const size_t udp_length = kUdpLength + size;
  uint64_t* w = frame.words;
  if (addresses.destination.IsV4()) {
    w[0] = w[1] = 0;
    w[2] = 0xFFFFFFFFull << 32;
    // 45, TOS, total length, ID, flags DF; TTL, protocol UDP, checksum.
    w[3] =
        0xFF45 | Be16(kIpv4Length + udp_length) << 16 | Be16(ip_id) << 32 | uint64_t{0x0040} << 48;
    w[4] = 0xFFFF11FF | uint64_t{LoadRaw<uint32_t>(source + 12)} << 32;
    w[5] = LoadRaw<uint32_t>(destination + 12) | ports << 32;
  } else {
    // 6, traffic class, flow label; payload length, next header UDP, hop limit.
    w[0] = 0xFFFFFFFF | uint64_t{0xFFFFFF6F} << 32;
    w[1] = Be16(udp_length) | uint64_t{0xFF11} << 16 | uint64_t{LoadRaw<uint32_t>(source)} << 32;
    w[2] = LoadRaw<uint64_t>(source + 4);
    w[3] = LoadRaw<uint32_t>(source + 12) | uint64_t{LoadRaw<uint32_t>(destination)} << 32;
    w[4] = LoadRaw<uint64_t>(destination + 4);
    w[5] = LoadRaw<uint32_t>(destination + 12) | ports << 32;
  }
  // Length, checksum; BTH with byte 4 masked.
  w[6] = Be16(udp_length) | uint64_t{0xFFFF} << 16 | uint64_t{LoadRaw<uint32_t>(bth)} << 32;
  w[7] = LoadRaw<uint64_t>(bth + 4) | 0xFF;
}

// The CRC behind the frame and `length` bytes from the end of the BTH.
uint32_t Cover(const crc32::Kernel& kernel, const crc32::Preamble& frame, const uint8_t* rest,
               size_t length) {
  const uint32_t state =
      kernel.update(0, reinterpret_cast<const uint8_t*>(frame.words), sizeof frame.words);
  return kernel.update(state, rest, length);
}

}  // namespace

void SealIcrc(const Path& path, uint16_t ip_id, uint8_t* datagram, size_t length,
              const KnownCrc& known) {
  const crc32::Kernel& kernel = crc32::ActiveKernel();
  crc32::Preamble frame;
  Frame({path.source, path.destination, path.source_port}, ip_id, datagram, length + kIcrcLength,
        frame);
  uint32_t state;
  if (known.length == 0) {
    state = Cover(kernel, frame, datagram + kBthLength, length - kBthLength);
  } else {
    const size_t end = known.offset + known.length;
    state = Cover(kernel, frame, datagram + kBthLength, known.offset - kBthLength);
    state = kernel.multiply(state, crc32::ShiftFactor(known.length)) ^ known.crc;
    state = kernel.update(state, datagram + end, length - end);
  }
  StoreRaw(datagram + length, ~state);
}

bool VerifyIcrc(const RxMeta& meta, std::span<const uint8_t> datagram, uint16_t* ip_id) {
  *ip_id = meta.ip_id;
  if (datagram.size() < kBthLength + kIcrcLength) return false;
  const crc32::Kernel& kernel = crc32::ActiveKernel();
  const size_t length = datagram.size() - kIcrcLength;
  const bool search = !meta.ip_id_known && meta.destination.IsV4();
  crc32::Preamble frame;
  Frame({meta.source, meta.destination, meta.source_port}, search ? 0 : meta.ip_id, datagram.data(),
        datagram.size(), frame);
  const uint32_t state = Cover(kernel, frame, datagram.data() + kBthLength, length - kBthLength);
  const uint32_t difference = ~state ^ LoadRaw<uint32_t>(datagram.data() + length);
  if (!search) return difference == 0;
  // What the ID adds to the state is its 16 bits times a power of x that depends on the length
  // only. Divided by that power, a right difference is a polynomial of 16 bits again.
  const uint32_t id = kernel.multiply(difference, crc32::UnshiftFactor(kBehindIpId + length));
  *ip_id = __builtin_bswap16(static_cast<uint16_t>(id >> 16));
  return static_cast<uint16_t>(id) == 0;
}

}  // namespace rocegw::wire
