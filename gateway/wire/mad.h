// SPDX-License-Identifier: Apache-2.0
// Management datagrams of the connection manager as host-order values, and their bytes (IBTA 13.4.3
// MAD header, 12.6 CM messages, annex A11 IP addressing in private data). A MAD is the 256-byte
// payload of a UD SEND to QP1. Decoding checks what all CM messages have in common; the connection
// manager checks the values. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/wire/gid.h"
#include "gateway/wire/headers.h"

namespace rocegw::wire {

inline constexpr size_t kMadLength = 256;
inline constexpr size_t kMadHeaderLength = 24;
inline constexpr uint8_t kMadClassCm = 0x07;

using MadBytes = std::array<uint8_t, kMadLength>;

enum class CmAttribute : uint16_t {
  kReq = 0x10,
  kMra = 0x11,
  kRej = 0x12,
  kRep = 0x13,
  kRtu = 0x14,
  kDreq = 0x15,
  kDrep = 0x16,
  kSidrReq = 0x17,
  kSidrRep = 0x18,
  kLap = 0x19,
  kApr = 0x1A,
};

// REQ TransportType.
inline constexpr uint8_t kXrcTransport = 1;  // ExtendedTransportType
enum class CmTransport : uint8_t { kRc = 0, kUc = 1, kRd = 2, kExtended = 3 };

// Message that an MRA or REJ answers.
enum class CmAnswered : uint8_t { kReq = 0, kRep = 1, kOther = 2 };

// REJ Reason (IBTA table 106). Other values may arrive; they are passed on as numbers.
enum class RejectReason : uint16_t {
  kNoQp = 1,
  kNoResources = 3,
  kTimeout = 4,
  kUnsupported = 5,
  kInvalidCommId = 6,
  kInvalidCommInstance = 7,
  kInvalidServiceId = 8,
  kInvalidTransport = 9,
  kStaleConnection = 10,
  kInvalidGid = 12,
  kInvalidAlternateGid = 18,
  kInvalidMtu = 26,
  kConsumer = 28,
  kVendorOption = 35,
};

// SIDR_REP Status.
enum class SidrStatus : uint8_t {
  kOk = 0,
  kUnsupportedService = 1,
  kRejected = 2,
  kNoQp = 3,
  kRedirect = 4,
  kUnsupportedVersion = 5,
};

// Path block of a REQ, the same for the primary and the alternate path.
struct CmPath {
  uint16_t local_lid = 0;
  uint16_t remote_lid = 0;
  Gid local_gid;   // address of the REQ's sender
  Gid remote_gid;  // address of its receiver
  uint32_t flow_label = 0;
  uint8_t packet_rate = 0;
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint8_t service_level = 0;
  bool subnet_local = false;
  uint8_t local_ack_timeout = 0;  // 4.096 us * 2^t; the receiver's QP timeout

  bool operator==(const CmPath&) const = default;
};

// Request for a connection. Depths and PSN are the sender's: what it can answer, what it will ask,
// what it expects first. Timeouts are 5-bit codes, 4.096 us * 2^t.
struct CmReq {
  static constexpr CmAttribute kAttribute = CmAttribute::kReq;
  uint32_t local_comm_id = 0;
  uint32_t vendor_id = 0;  // 24 bits
  uint64_t service_id = 0;
  uint64_t local_ca_guid = 0;
  uint32_t local_qkey = 0;
  Qpn local_qpn;
  uint8_t responder_resources = 0;
  uint32_t local_eecn = 0;
  uint8_t initiator_depth = 0;
  uint32_t remote_eecn = 0;
  uint8_t remote_response_timeout = 0;
  CmTransport transport = CmTransport::kRc;
  bool flow_control = false;
  Psn starting_psn;
  uint8_t local_response_timeout = 0;
  uint8_t retry_count = 0;
  uint16_t pkey = kDefaultPkey;
  uint8_t path_mtu = 0;  // 1 = 256 .. 5 = 4096
  bool rdc_exists = false;
  uint8_t rnr_retry_count = 0;
  uint8_t max_cm_retries = 0;
  bool srq = false;
  uint8_t extended_transport = 0;
  CmPath primary;
  CmPath alternate;
  std::array<uint8_t, 92> private_data{};

  bool operator==(const CmReq&) const = default;
};

struct CmMra {
  static constexpr CmAttribute kAttribute = CmAttribute::kMra;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  CmAnswered answered = CmAnswered::kReq;
  uint8_t service_timeout = 0;
  std::array<uint8_t, 222> private_data{};

  bool operator==(const CmMra&) const = default;
};

struct CmRej {
  static constexpr CmAttribute kAttribute = CmAttribute::kRej;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  CmAnswered answered = CmAnswered::kReq;
  uint8_t info_length = 0;  // 7 bits; may exceed the length of `info`
  RejectReason reason = RejectReason::kConsumer;
  std::array<uint8_t, 72> info{};  // additional reject information
  std::array<uint8_t, 148> private_data{};

  bool operator==(const CmRej&) const = default;
};

struct CmRep {
  static constexpr CmAttribute kAttribute = CmAttribute::kRep;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint32_t local_qkey = 0;
  Qpn local_qpn;
  uint32_t vendor_id = 0;  // 24 bits, scattered over three bytes
  uint32_t local_eecn = 0;
  Psn starting_psn;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  uint8_t target_ack_delay = 0;
  uint8_t failover_accepted = 0;
  bool flow_control = false;
  uint8_t rnr_retry_count = 0;
  bool srq = false;
  uint64_t local_ca_guid = 0;
  std::array<uint8_t, 196> private_data{};

  bool operator==(const CmRep&) const = default;
};

struct CmRtu {
  static constexpr CmAttribute kAttribute = CmAttribute::kRtu;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  std::array<uint8_t, 224> private_data{};

  bool operator==(const CmRtu&) const = default;
};

struct CmDreq {
  static constexpr CmAttribute kAttribute = CmAttribute::kDreq;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  Qpn remote_qpn;  // the receiver's QPN
  std::array<uint8_t, 220> private_data{};

  bool operator==(const CmDreq&) const = default;
};

struct CmDrep {
  static constexpr CmAttribute kAttribute = CmAttribute::kDrep;
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  std::array<uint8_t, 224> private_data{};

  bool operator==(const CmDrep&) const = default;
};

struct CmSidrReq {
  static constexpr CmAttribute kAttribute = CmAttribute::kSidrReq;
  uint32_t request_id = 0;
  uint16_t pkey = kDefaultPkey;
  uint64_t service_id = 0;
  std::array<uint8_t, 216> private_data{};

  bool operator==(const CmSidrReq&) const = default;
};

struct CmSidrRep {
  static constexpr CmAttribute kAttribute = CmAttribute::kSidrRep;
  uint32_t request_id = 0;
  SidrStatus status = SidrStatus::kOk;
  uint8_t info_length = 0;
  uint32_t vendor_id = 0;  // 24 bits; Linux leaves the upper eight 0
  Qpn qpn;
  uint64_t service_id = 0;
  uint32_t qkey = 0;
  std::array<uint8_t, 72> info{};
  std::array<uint8_t, 136> private_data{};

  bool operator==(const CmSidrRep&) const = default;
};

// LAP and APR: path migration, which RoCE does not have. Decoded to distinguish them from malformed
// messages.
struct CmPathMigration {
  CmAttribute attribute = CmAttribute::kLap;

  bool operator==(const CmPathMigration&) const = default;
};

using CmBody = std::variant<CmReq, CmMra, CmRej, CmRep, CmRtu, CmDreq, CmDrep, CmSidrReq, CmSidrRep,
                            CmPathMigration>;

struct CmMad {
  uint64_t transaction_id = 0;
  uint32_t attribute_modifier = 0;  // REQ, REP, SIDR_REP: options defined by the vendor ID
  CmBody body;

  bool operator==(const CmMad&) const = default;
};

// Checks the header of a MAD. Returns kNone for a CM message that DecodeMad accepts;
// k_mad_malformed for a wrong size, base version, class version, method or attribute;
// k_mad_unknown_class for another management class. Workers call it to drop foreign classes before
// they reach the control thread.
[[nodiscard]] metrics::DropReason CheckMad(std::span<const uint8_t> bytes);

// Checks like CheckMad and decodes; `out` is complete only with kNone.
[[nodiscard]] metrics::DropReason DecodeMad(std::span<const uint8_t> bytes, CmMad& out);

// Writes all 256 bytes; bytes without a field are 0.
void EncodeMad(const CmMad& mad, std::span<uint8_t, kMadLength> out);

// Returns a line such as "CM REQ comm=0x11111111 service=0x1061d2f qp=0x000012 psn=11259375
// vendor=0x0015b3/0x1 mtu=1024".
std::string Describe(const CmMad& mad);

// Header that rdma_cm writes in front of the user's private data in REQ and SIDR_REQ.
struct IpCmHeader {
  uint8_t ip_version = 4;  // 4 or 6
  uint16_t source_port = 0;
  Gid source;       // IPv4 as ::ffff:a.b.c.d
  Gid destination;  // the destination port is in the service ID

  bool operator==(const IpCmHeader&) const = default;
};
inline constexpr size_t kIpCmHeaderLength = 36;

// Returns false if the protocol version is not 0 or the IP version is neither 4 nor 6.
[[nodiscard]] bool DecodeIpCm(std::span<const uint8_t, kIpCmHeaderLength> bytes, IpCmHeader& out);
void EncodeIpCm(const IpCmHeader& header, std::span<uint8_t, kIpCmHeaderLength> out);

// Returns a service ID of the IP port spaces: port space in bits 31:16, port in 15:0, zero above.
constexpr uint64_t IpServiceId(uint16_t port_space, uint16_t port) {
  return static_cast<uint64_t>(port_space) << 16 | port;
}

}  // namespace rocegw::wire
