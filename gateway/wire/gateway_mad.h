// SPDX-License-Identifier: Apache-2.0
// Discovery MAD of gateways: a vendor MAD, Get and GetResp (IBTA 13.4.3, 16.5: vendor class with an
// OUI, 0x30 to 0x4F). Its option bits are also the vendor options of CM messages
// (cm/connection/negotiation.h). An RDMA device answers the class with an error status or not at
// all. Bytes: docs/develop/wire_format.md. Pure functions; host order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gateway/base/ids.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/wire/mad.h"

namespace rocegw::wire {

// Default vendor ID: a locally administered company id (bit 0x02 of its first byte), canonically
// "02:BA:DD"; no vendor owns it.
inline constexpr uint32_t kDefaultVendorId = 0x02BADD;
inline constexpr uint32_t kVendorIdMask = 0xFFFFFF;

inline constexpr uint8_t kFirstVendorClass = 0x30;
inline constexpr uint8_t kLastVendorClass = 0x4F;
constexpr bool IsVendorClass(uint8_t management_class) {
  return management_class >= kFirstVendorClass && management_class <= kLastVendorClass;
}
inline constexpr uint8_t kMadClassGateway = 0x3C;
inline constexpr uint16_t kAttributeGatewayInfo = 0x0010;
// MAD status "method or attribute not supported": Linux's answer to classes without a handler.
inline constexpr uint16_t kMadStatusUnsupported = 0x000C;

// Options that a gateway has, offers, or agreed to. A gateway always sets kOptionPresent: our
// vendor ID with options 0 is an RDMA device's echo.
enum GatewayOption : uint32_t {
  kOptionPresent = 1u << 0,
  kOptionChannel = 1u << 1,
  kOptionSelectiveAck = 1u << 2,
  kOptionNoIcrc = 1u << 3,        // channel frames without ICRC; else with ICRC
  kOptionOrdering = 1u << 4,      // accepts messages with relaxed order
  kOptionEndpoints = 1u << 5,     // has endpoints, which accept messages without a connection
  kOptionInvalidation = 1u << 6,  // accepts SEND with invalidate
  kOptionPlacement = 1u << 7,     // accepts FLUSH and ATOMIC WRITE
  // Bit 8 + n is congestion control kind n, numbered as in channel frames.
  kOptionCcStatic = 1u << 8,
  kOptionCcDcqcn = 1u << 9,
  kOptionCcDctcp = 1u << 10,
  kOptionCcHint = 1u << 11,  // proportional hints
  kOptionCcRtt = 1u << 12,
  kOptionEndpointReads = 1u << 16,  // its endpoints accept READs and atomics
  // Has keys of the fleet: sends and accepts tagged control packets (authentication.h).
  kOptionAuthentication = 1u << 17,
  kOptionBundles = 1u << 18,  // takes several packets of a channel in one datagram
  kOptionSealing = 1u << 19,  // seals datagrams of channels (seal/sealed_datagram.h)
  // Executes the atomics of kFetchOperate, for queue pairs and endpoints.
  kOptionFetchOperate = 1u << 20,
};
inline constexpr uint32_t kOptionCcMask = 0x0000FF00;
// Returns the options that hold between two gateways, given those that both have: includes the best
// common kind of congestion control. 0: no channel is possible, since it needs selective
// acknowledgement.
uint32_t AgreedOptions(uint32_t common);
// Returns "channel", "selective acknowledgement", ...; nullptr for an undefined bit.
const char* OptionName(uint32_t bit);

inline constexpr uint32_t kMostGatewayWorkers = 64;

// Place of the tag in the MAD. Gateways without keys, and earlier versions, send 0 there and ignore
// these bytes.
inline constexpr size_t kMadTaggedAt = 42;   // 1: tagged
inline constexpr size_t kMadTagHighAt = 20;  // the attribute modifier
inline constexpr size_t kMadTagLowAt = 252;

struct GatewayInfo {
  uint8_t version = 1;    // highest supported version
  uint8_t workers = 1;    // 1 to 64; bucket b of its QPNs belongs to worker b modulo workers
  uint32_t instance = 0;  // random, drawn at its start, never 0
  uint32_t epoch = 0;     // grows when the instance's information changes
  uint32_t features = 0;  // GatewayOption bits
  uint32_t window = 0;    // bytes in flight that one of its workers accepts
  // Acceptor QPN per worker, in the worker's buckets. All 0 without kOptionChannel.
  std::array<Qpn, kMostGatewayWorkers> acceptors{};

  // Returns the worker that owns this QPN.
  uint32_t WorkerOf(Qpn qpn) const { return (qpn.value >> 18) % workers; }
  bool operator==(const GatewayInfo&) const = default;
};

struct GatewayMad {
  bool response = false;
  uint16_t status = 0;  // status of a response; if not 0, `info` is absent
  uint64_t transaction_id = 0;
  GatewayInfo info;  // information about the sender, in a query too
  // Set only without an error status. `tag` is the received one; SealGatewayMad computes the one to
  // send.
  bool tagged = false;
  uint64_t tag = 0;

  bool operator==(const GatewayMad&) const = default;
};

// Returns true if a MAD has a vendor class with an OUI, so it does not concern the connection
// manager.
bool IsVendorMad(std::span<const uint8_t> bytes);

// Decodes a MAD. k_mad_unknown_class: another class, OUI or attribute. k_mad_malformed: wrong size,
// version or method, or contents that no gateway sends. `out` is complete only with kNone.
[[nodiscard]] metrics::DropReason DecodeGatewayMad(std::span<const uint8_t> bytes, uint32_t oui,
                                                   GatewayMad& out);
void EncodeGatewayMad(const GatewayMad& mad, uint32_t oui, std::span<uint8_t, kMadLength> out);

// Writes the answer to an unsupported Get: the same bytes with an error status. Returns false for a
// MAD that must not be answered.
bool RefuseMad(std::span<const uint8_t> bytes, std::span<uint8_t, kMadLength> out);

// Returns a line such as "gateway 0x1234abcd/1 workers=2 window=262144 options=0x307: channel,
// ...".
std::string Describe(const GatewayInfo& info);
// Returns text such as "channel, selective acknowledgement"; "nothing" if only kOptionPresent is
// set.
std::string OptionText(uint32_t options);

}  // namespace rocegw::wire
