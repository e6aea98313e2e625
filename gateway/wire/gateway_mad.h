// SPDX-License-Identifier: Apache-2.0
// What gateways tell each other about themselves: a vendor MAD, Get and GetResp (IBTA 13.4.3, 16.5:
// vendor class with an OUI, 0x30 to 0x4F), and the option bits that it shares with the vendor
// options of CM messages (cm/connection/negotiation.h). An RDMA device answers the class with an
// error status or not at all. Byte by byte in docs/develop/wire_format.md. Pure functions; host
// order.
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

// A locally administered company id (the bit 0x02 of its first byte), "02:BA:DD" as canonically
// written: no vendor owns it.
inline constexpr uint32_t kDefaultVendorId = 0x02BADD;
inline constexpr uint32_t kVendorIdMask = 0xFFFFFF;

inline constexpr uint8_t kFirstVendorClass = 0x30;
inline constexpr uint8_t kLastVendorClass = 0x4F;
inline constexpr uint8_t kMadClassGateway = 0x3C;
inline constexpr uint16_t kAttributeGatewayInfo = 0x0010;
// Method or attribute not supported; what Linux answers to classes that nobody serves.
inline constexpr uint16_t kMadStatusUnsupported = 0x000C;

// What a gateway can do, offers, or has agreed to. kOptionPresent is in all that a gateway says:
// our vendor ID with options 0 is an RDMA device's echo.
enum GatewayOption : uint32_t {
  kOptionPresent = 1u << 0,
  kOptionChannel = 1u << 1,
  kOptionSelectiveAck = 1u << 2,
  kOptionNoIcrc = 1u << 3,        // frames of channels without ICRC; else with
  kOptionOrdering = 1u << 4,      // takes messages whose order is relaxed
  kOptionEndpoints = 1u << 5,     // has endpoints, which take messages without a connection
  kOptionInvalidation = 1u << 6,  // takes SENDs that invalidate
  kOptionPlacement = 1u << 7,     // takes FLUSH and ATOMIC WRITE
  // Bit 8 + n is kind n of congestion control, as frames of channels number it.
  kOptionCcStatic = 1u << 8,
  kOptionCcDcqcn = 1u << 9,
  kOptionCcDctcp = 1u << 10,
  kOptionCcHint = 1u << 11,  // proportional hints
  kOptionCcRtt = 1u << 12,
  kOptionEndpointReads = 1u << 16,  // its endpoints take READs and atomics
  // Has keys of the fleet: sends and takes tagged control packets (authentication.h).
  kOptionAuthentication = 1u << 17,
};
inline constexpr uint32_t kOptionCcMask = 0x0000FF00;
// What both can do: the options that will hold, with the best kind of congestion control that is
// among them; 0: no channel, which needs selective acknowledgement.
uint32_t AgreedOptions(uint32_t common);
// "channel", "selective acknowledgement", ...; nullptr for a bit without a meaning.
const char* OptionName(uint32_t bit);

inline constexpr uint32_t kMostGatewayWorkers = 64;

// Where the tag lies in the MAD. Gateways without keys, and earlier versions, send 0 there and look
// at none of these bytes.
inline constexpr size_t kMadTaggedAt = 42;   // 1: it is tagged
inline constexpr size_t kMadTagHighAt = 20;  // the attribute modifier
inline constexpr size_t kMadTagLowAt = 252;

struct GatewayInfo {
  uint8_t version = 1;    // the highest that it speaks
  uint8_t workers = 1;    // 1 to 64; bucket b of its QPNs belongs to worker b modulo workers
  uint32_t instance = 0;  // drawn at its start, never 0
  uint32_t epoch = 0;     // grows when the instance has something else to say
  uint32_t features = 0;  // GatewayOption bits
  uint32_t window = 0;    // bytes that may be under way to one of its workers
  // By worker; QPNs of its buckets. All 0 without kOptionChannel.
  std::array<Qpn, kMostGatewayWorkers> acceptors{};

  // Of the one that owns this QPN.
  uint32_t WorkerOf(Qpn qpn) const { return (qpn.value >> 18) % workers; }
  bool operator==(const GatewayInfo&) const = default;
};

struct GatewayMad {
  bool response = false;
  uint16_t status = 0;  // of a response; not 0: it has no info
  uint64_t transaction_id = 0;
  GatewayInfo info;  // of the sender, in a query too
  // Of one without an error status. SealGatewayMad makes the tag; this is the one that came.
  bool tagged = false;
  uint64_t tag = 0;

  bool operator==(const GatewayMad&) const = default;
};

// Whether a MAD is of a vendor class with an OUI, and so none of the connection manager's.
bool IsVendorMad(std::span<const uint8_t> bytes);

// k_mad_unknown_class: another class, OUI or attribute. k_mad_malformed: a wrong size, version or
// method, or contents that no gateway sends. `out` is complete only with kNone.
[[nodiscard]] metrics::DropReason DecodeGatewayMad(std::span<const uint8_t> bytes, uint32_t oui,
                                                   GatewayMad& out);
void EncodeGatewayMad(const GatewayMad& mad, uint32_t oui, std::span<uint8_t, kMadLength> out);

// The answer to a Get that is not served: the same bytes with an error status. False for what must
// not be answered.
bool RefuseMad(std::span<const uint8_t> bytes, std::span<uint8_t, kMadLength> out);

// "gateway 0x1234abcd/1 workers=2 window=262144 options=0x307: channel, ...".
std::string Describe(const GatewayInfo& info);
// "channel, selective acknowledgement"; "nothing" for none but kOptionPresent.
std::string OptionText(uint32_t options);

}  // namespace rocegw::wire
