// SPDX-License-Identifier: Apache-2.0
// Encoding of MADs. Each message is one list of (byte, bit, width, member), in the bit numbering of
// the standard: bit 0 is the most significant of its byte. Reader and Writer use the same list, so
// both directions agree.
#include "gateway/wire/mad.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace rocegw::wire {
namespace {

using metrics::DropReason;

constexpr uint8_t kBaseVersion = 1;
constexpr uint8_t kCmClassVersion = 2;
constexpr uint8_t kMethodSend = 0x03;

uint64_t ToNumber(Qpn v) { return v.value; }
uint64_t ToNumber(Psn v) { return v.value; }
template <typename T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) uint64_t ToNumber(T v) {
  return static_cast<uint64_t>(v);
}
void FromNumber(uint64_t n, Qpn& v) { v.value = static_cast<uint32_t>(n); }
void FromNumber(uint64_t n, Psn& v) { v = Psn(static_cast<uint32_t>(n)); }
template <typename T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) void FromNumber(uint64_t n, T& v) {
  v = static_cast<T>(n);
}

uint64_t GetBits(const uint8_t* base, size_t byte, unsigned bit, unsigned width) {
  uint64_t value = 0;
  for (unsigned i = bit; i < bit + width;) {
    const unsigned in_byte = i % 8;
    const unsigned take = std::min(8 - in_byte, bit + width - i);
    const uint8_t piece =
        static_cast<uint8_t>(base[byte + i / 8] >> (8 - in_byte - take)) & ((1u << take) - 1);
    value = value << take | piece;
    i += take;
  }
  return value;
}

// Stores a field; its bits must be 0 before.
void PutBits(uint8_t* base, size_t byte, unsigned bit, unsigned width, uint64_t value) {
  unsigned left = width;
  for (unsigned i = bit; i < bit + width;) {
    const unsigned in_byte = i % 8;
    const unsigned take = std::min(8 - in_byte, bit + width - i);
    left -= take;
    const uint64_t piece = value >> left & ((1u << take) - 1);
    base[byte + i / 8] |= static_cast<uint8_t>(piece << (8 - in_byte - take));
    i += take;
  }
}

class Reader {
 public:
  explicit Reader(const uint8_t* message) : message_(message) {}

  template <typename T>
  void Bits(size_t byte, unsigned bit, unsigned width, T& member) {
    FromNumber(GetBits(message_, byte, bit, width), member);
  }
  template <size_t N>
  void Bytes(size_t byte, std::array<uint8_t, N>& member) {
    std::memcpy(member.data(), message_ + byte, N);
  }

 private:
  const uint8_t* message_;
};

class Writer {
 public:
  explicit Writer(uint8_t* message) : message_(message) {}

  template <typename T>
  void Bits(size_t byte, unsigned bit, unsigned width, const T& member) {
    PutBits(message_, byte, bit, width, ToNumber(member));
  }
  template <size_t N>
  void Bytes(size_t byte, const std::array<uint8_t, N>& member) {
    std::memcpy(message_ + byte, member.data(), N);
  }

 private:
  uint8_t* message_;
};

// Part of a 24-bit vendor ID whose upper and lower parts are apart. Each part is a whole number of
// bytes.
struct Part {
  size_t byte;
  unsigned width;
};
template <size_t N>
void Scattered(Reader& io, const Part (&parts)[N], uint32_t& member) {
  member = 0;
  for (const Part& part : parts) {
    uint32_t piece = 0;
    io.Bits(part.byte, 0, part.width, piece);
    member = member << part.width | piece;
  }
}
template <size_t N>
void Scattered(Writer& io, const Part (&parts)[N], uint32_t member) {
  unsigned left = 24;
  for (const Part& part : parts) {
    left -= part.width;
    io.Bits(part.byte, 0, part.width, member >> left);
  }
}

template <typename Message, typename Wanted>
concept Is = std::is_same_v<std::remove_const_t<Message>, Wanted>;

template <typename Io, Is<CmPath> M>
void PathFields(Io& io, size_t base, M& m) {
  io.Bits(base + 0, 0, 16, m.local_lid);
  io.Bits(base + 2, 0, 16, m.remote_lid);
  io.Bytes(base + 4, m.local_gid.bytes);
  io.Bytes(base + 20, m.remote_gid.bytes);
  io.Bits(base + 36, 0, 20, m.flow_label);
  io.Bits(base + 39, 2, 6, m.packet_rate);
  io.Bits(base + 40, 0, 8, m.traffic_class);
  io.Bits(base + 41, 0, 8, m.hop_limit);
  io.Bits(base + 42, 0, 4, m.service_level);
  io.Bits(base + 42, 4, 1, m.subnet_local);
  io.Bits(base + 43, 0, 5, m.local_ack_timeout);
}

template <typename Io, Is<CmReq> M>
void Fields(Io& io, M& m) {
  io.Bits(0, 0, 32, m.local_comm_id);
  io.Bits(5, 0, 24, m.vendor_id);
  io.Bits(8, 0, 64, m.service_id);
  io.Bits(16, 0, 64, m.local_ca_guid);
  io.Bits(28, 0, 32, m.local_qkey);
  io.Bits(32, 0, 24, m.local_qpn);
  io.Bits(35, 0, 8, m.responder_resources);
  io.Bits(36, 0, 24, m.local_eecn);
  io.Bits(39, 0, 8, m.initiator_depth);
  io.Bits(40, 0, 24, m.remote_eecn);
  io.Bits(43, 0, 5, m.remote_response_timeout);
  io.Bits(43, 5, 2, m.transport);
  io.Bits(43, 7, 1, m.flow_control);
  io.Bits(44, 0, 24, m.starting_psn);
  io.Bits(47, 0, 5, m.local_response_timeout);
  io.Bits(47, 5, 3, m.retry_count);
  io.Bits(48, 0, 16, m.pkey);
  io.Bits(50, 0, 4, m.path_mtu);
  io.Bits(50, 4, 1, m.rdc_exists);
  io.Bits(50, 5, 3, m.rnr_retry_count);
  io.Bits(51, 0, 4, m.max_cm_retries);
  io.Bits(51, 4, 1, m.srq);
  io.Bits(51, 5, 3, m.extended_transport);
  PathFields(io, 52, m.primary);
  PathFields(io, 96, m.alternate);
  io.Bytes(140, m.private_data);
}

template <typename Io, Is<CmMra> M>
void Fields(Io& io, M& m) {
  io.Bits(0, 0, 32, m.local_comm_id);
  io.Bits(4, 0, 32, m.remote_comm_id);
  io.Bits(8, 0, 2, m.answered);
  io.Bits(9, 0, 5, m.service_timeout);
  io.Bytes(10, m.private_data);
}

template <typename Io, Is<CmRej> M>
void Fields(Io& io, M& m) {
  io.Bits(0, 0, 32, m.local_comm_id);
  io.Bits(4, 0, 32, m.remote_comm_id);
  io.Bits(8, 0, 2, m.answered);
  io.Bits(9, 0, 7, m.info_length);
  io.Bits(10, 0, 16, m.reason);
  io.Bytes(12, m.info);
  io.Bytes(84, m.private_data);
}

template <typename Io, Is<CmRep> M>
void Fields(Io& io, M& m) {
  io.Bits(0, 0, 32, m.local_comm_id);
  io.Bits(4, 0, 32, m.remote_comm_id);
  io.Bits(8, 0, 32, m.local_qkey);
  io.Bits(12, 0, 24, m.local_qpn);
  Scattered(io, {Part{15, 8}, Part{19, 8}, Part{23, 8}}, m.vendor_id);
  io.Bits(16, 0, 24, m.local_eecn);
  io.Bits(20, 0, 24, m.starting_psn);
  io.Bits(24, 0, 8, m.responder_resources);
  io.Bits(25, 0, 8, m.initiator_depth);
  io.Bits(26, 0, 5, m.target_ack_delay);
  io.Bits(26, 5, 2, m.failover_accepted);
  io.Bits(26, 7, 1, m.flow_control);
  io.Bits(27, 0, 3, m.rnr_retry_count);
  io.Bits(27, 3, 1, m.srq);
  io.Bits(28, 0, 64, m.local_ca_guid);
  io.Bytes(36, m.private_data);
}

template <typename Io, typename M>
requires(Is<M, CmRtu> || Is<M, CmDrep>) void Fields(Io& io, M& m) {
  io.Bits(0, 0, 32, m.local_comm_id);
  io.Bits(4, 0, 32, m.remote_comm_id);
  io.Bytes(8, m.private_data);
}

template <typename Io, Is<CmDreq> M>
void Fields(Io& io, M& m) {
  io.Bits(0, 0, 32, m.local_comm_id);
  io.Bits(4, 0, 32, m.remote_comm_id);
  io.Bits(8, 0, 24, m.remote_qpn);
  io.Bytes(12, m.private_data);
}

template <typename Io, Is<CmSidrReq> M>
void Fields(Io& io, M& m) {
  io.Bits(0, 0, 32, m.request_id);
  io.Bits(4, 0, 16, m.pkey);
  io.Bits(8, 0, 64, m.service_id);
  io.Bytes(16, m.private_data);
}

template <typename Io, Is<CmSidrRep> M>
void Fields(Io& io, M& m) {
  io.Bits(0, 0, 32, m.request_id);
  io.Bits(4, 0, 8, m.status);
  io.Bits(5, 0, 8, m.info_length);
  Scattered(io, {Part{6, 16}, Part{11, 8}}, m.vendor_id);
  io.Bits(8, 0, 24, m.qpn);
  io.Bits(12, 0, 64, m.service_id);
  io.Bits(20, 0, 32, m.qkey);
  io.Bytes(24, m.info);
  io.Bytes(96, m.private_data);
}

template <typename Io, Is<CmPathMigration> M>
void Fields(Io&, M&) {}

// The last field of every message ends with the datagram.
constexpr size_t kCmLength = kMadLength - kMadHeaderLength;
static_assert(140 + sizeof(CmReq::private_data) == kCmLength);
static_assert(10 + sizeof(CmMra::private_data) == kCmLength);
static_assert(84 + sizeof(CmRej::private_data) == kCmLength);
static_assert(36 + sizeof(CmRep::private_data) == kCmLength);
static_assert(8 + sizeof(CmRtu::private_data) == kCmLength);
static_assert(12 + sizeof(CmDreq::private_data) == kCmLength);
static_assert(8 + sizeof(CmDrep::private_data) == kCmLength);
static_assert(16 + sizeof(CmSidrReq::private_data) == kCmLength);
static_assert(96 + sizeof(CmSidrRep::private_data) == kCmLength);

template <typename Message>
void Read(Reader& io, CmBody& body) {
  Message message;
  Fields(io, message);
  body = message;
}

CmAttribute AttributeOf(const CmPathMigration& m) { return m.attribute; }
template <typename Message>
CmAttribute AttributeOf(const Message&) {
  return Message::kAttribute;
}

bool KnownAttribute(uint64_t attribute) {
  return attribute >= static_cast<uint64_t>(CmAttribute::kReq) &&
         attribute <= static_cast<uint64_t>(CmAttribute::kApr);
}

}  // namespace

DropReason CheckMad(std::span<const uint8_t> bytes) {
  if (bytes.size() != kMadLength) return DropReason::k_mad_malformed;
  if (bytes[0] != kBaseVersion) return DropReason::k_mad_malformed;
  if (bytes[1] != kMadClassCm) return DropReason::k_mad_unknown_class;
  if (bytes[2] != kCmClassVersion || bytes[3] != kMethodSend) return DropReason::k_mad_malformed;
  if (!KnownAttribute(GetBits(bytes.data(), 16, 0, 16))) return DropReason::k_mad_malformed;
  return DropReason::kNone;
}

DropReason DecodeMad(std::span<const uint8_t> bytes, CmMad& out) {
  if (const DropReason reason = CheckMad(bytes); reason != DropReason::kNone) return reason;
  out.transaction_id = GetBits(bytes.data(), 8, 0, 64);
  out.attribute_modifier = static_cast<uint32_t>(GetBits(bytes.data(), 20, 0, 32));
  Reader io(bytes.data() + kMadHeaderLength);
  switch (const auto attribute = static_cast<CmAttribute>(GetBits(bytes.data(), 16, 0, 16))) {
    case CmAttribute::kReq:
      Read<CmReq>(io, out.body);
      break;
    case CmAttribute::kMra:
      Read<CmMra>(io, out.body);
      break;
    case CmAttribute::kRej:
      Read<CmRej>(io, out.body);
      break;
    case CmAttribute::kRep:
      Read<CmRep>(io, out.body);
      break;
    case CmAttribute::kRtu:
      Read<CmRtu>(io, out.body);
      break;
    case CmAttribute::kDreq:
      Read<CmDreq>(io, out.body);
      break;
    case CmAttribute::kDrep:
      Read<CmDrep>(io, out.body);
      break;
    case CmAttribute::kSidrReq:
      Read<CmSidrReq>(io, out.body);
      break;
    case CmAttribute::kSidrRep:
      Read<CmSidrRep>(io, out.body);
      break;
    case CmAttribute::kLap:
    case CmAttribute::kApr:
      out.body = CmPathMigration{attribute};
      break;
  }
  return DropReason::kNone;
}

void EncodeMad(const CmMad& mad, std::span<uint8_t, kMadLength> out) {
  std::memset(out.data(), 0, out.size());
  out[0] = kBaseVersion;
  out[1] = kMadClassCm;
  out[2] = kCmClassVersion;
  out[3] = kMethodSend;
  PutBits(out.data(), 8, 0, 64, mad.transaction_id);
  PutBits(out.data(), 20, 0, 32, mad.attribute_modifier);
  std::visit(
      [&out](const auto& message) {
        PutBits(out.data(), 16, 0, 16, ToNumber(AttributeOf(message)));
        Writer io(out.data() + kMadHeaderLength);
        Fields(io, message);
      },
      mad.body);
}

namespace {

constexpr size_t kIpCmV4Pad = 12;

void ReadAddress(const uint8_t* from, uint8_t ip_version, Gid& out) {
  std::memcpy(out.bytes.data(), from, out.bytes.size());
  if (ip_version == 4) out = Gid::FromV4(static_cast<uint32_t>(GetBits(from, kIpCmV4Pad, 0, 32)));
}

void WriteAddress(const Gid& address, uint8_t ip_version, uint8_t* to) {
  std::memcpy(to, address.bytes.data(), address.bytes.size());
  if (ip_version == 4) std::memset(to, 0, kIpCmV4Pad);
}

}  // namespace

bool DecodeIpCm(std::span<const uint8_t, kIpCmHeaderLength> bytes, IpCmHeader& out) {
  if (bytes[0] != 0) return false;
  out.ip_version = bytes[1] >> 4;
  if (out.ip_version != 4 && out.ip_version != 6) return false;
  out.source_port = static_cast<uint16_t>(GetBits(bytes.data(), 2, 0, 16));
  ReadAddress(bytes.data() + 4, out.ip_version, out.source);
  ReadAddress(bytes.data() + 20, out.ip_version, out.destination);
  return true;
}

void EncodeIpCm(const IpCmHeader& header, std::span<uint8_t, kIpCmHeaderLength> out) {
  std::memset(out.data(), 0, out.size());
  out[1] = static_cast<uint8_t>(header.ip_version << 4);
  PutBits(out.data(), 2, 0, 16, header.source_port);
  WriteAddress(header.source, header.ip_version, out.data() + 4);
  WriteAddress(header.destination, header.ip_version, out.data() + 20);
}

}  // namespace rocegw::wire
