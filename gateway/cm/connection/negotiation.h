// SPDX-License-Identifier: Apache-2.0
// Meaning of the vendor ID and attribute modifier of REQ and REP (enhanced connection
// establishment).
//
// Towards RDMA devices the gateway names no vendor and no options of its own, since promising
// another vendor's options would break the connection:
// - REQ: vendor 0, options 0;
// - REP: the vendor ID of the REQ with options 0, as RDMA devices without ECE answer; a requester
//   takes that, like vendor 0, as "none of the options";
// - received values are recorded and never a reason to refuse.
//
// Towards a peer that discovery knows as a gateway, the REQ offers wire::GatewayOption bits under
// our vendor ID, and the REP states which of them hold. kOptionPresent is set in both; without it
// our vendor ID is an echo and means no. Without a channel no other option is agreed. ECE that the
// program set itself travels unchanged; gateways then agree on what discovery found. What was sent,
// received and concluded is kept per connection for display. Pure functions.
#pragma once

#include <cstdint>

#include "gateway/cm/cm_types.h"
#include "gateway/cm/path/discovery.h"

namespace rocegw::cm {

// Parties of a negotiation, as this gateway sees them.
struct NegotiationView {
  uint32_t vendor_id = wire::kDefaultVendorId;  // vendor ID of both gateways
  uint32_t own = wire::kOptionPresent;          // options of this gateway
  PeerKind kind = PeerKind::kRnic;
  uint32_t peer = 0;  // options of the peer, found by discovery
};

struct EceRecord {
  Ece sent;
  Ece received;
  uint32_t agreed = 0;  // 0: plain RoCEv2; at most one kind of congestion control
  const char* verdict = "nothing exchanged yet";  // static text, one line
};

Ece EceForRequest(const Ece& application, const NegotiationView& view, EceRecord& record);
void EceFromReply(const Ece& received, const NegotiationView& view, EceRecord& record);

void EceFromRequest(const Ece& received, EceRecord& record);
// Returns what a reply would agree to now.
uint32_t WouldAgree(const EceRecord& record, const NegotiationView& view);
Ece EceForReply(const Ece& application, const NegotiationView& view, EceRecord& record);

}  // namespace rocegw::cm
