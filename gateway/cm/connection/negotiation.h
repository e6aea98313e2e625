// SPDX-License-Identifier: Apache-2.0
// What is said and understood in the vendor ID and attribute modifier of REQ and REP (enhanced
// connection establishment).
//
// Towards RDMA devices the gateway names no vendor of its own and no options, since promising one
// of theirs would break the connection:
//  - REQ: vendor 0, options 0;
//  - REP: the vendor ID of the REQ with options 0, as every RDMA device without ECE answers; a
//    requester takes that, like vendor 0, as "none of the options";
//  - whatever arrives is recorded and never a reason to refuse.
// Towards a peer that discovery knows as gateway the REQ offers wire::GatewayOption bits under our
// vendor ID and the REP says which of them hold. kOptionPresent is in both; without it our vendor
// ID is an echo and means no. Without a channel nothing else is agreed on. ECE that the program set
// itself travels unchanged; gateways then agree by what discovery told. What was sent, received and
// concluded is kept per connection for people to read. Pure functions.
#pragma once

#include <cstdint>

#include "gateway/cm/cm_types.h"
#include "gateway/cm/path/discovery.h"

namespace rocegw::cm {

// Who negotiates with whom.
struct NegotiationView {
  uint32_t vendor_id = wire::kDefaultVendorId;  // of both gateways
  uint32_t own = wire::kOptionPresent;          // what this one can do
  PeerKind kind = PeerKind::kRnic;
  uint32_t peer = 0;  // what discovery says that the peer can do
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
// What a reply would agree to now.
uint32_t WouldAgree(const EceRecord& record, const NegotiationView& view);
Ece EceForReply(const Ece& application, const NegotiationView& view, EceRecord& record);

}  // namespace rocegw::cm
