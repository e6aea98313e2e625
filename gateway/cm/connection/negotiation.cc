// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/negotiation.h"

namespace rocegw::cm {
namespace {

bool IsOffer(const Ece& ece, const NegotiationView& view) {
  return ece.vendor_id == view.vendor_id && (ece.options & wire::kOptionPresent) != 0;
}

uint32_t ByDiscovery(const NegotiationView& view) {
  return view.kind == PeerKind::kGateway ? wire::AgreedOptions(view.own & view.peer) : 0;
}

Ece Unchanged(const Ece& application) {
  return {application.vendor_id & wire::kVendorIdMask, application.options};
}

// Records the peer's answer to our offer.
void TakeAnswer(const NegotiationView& view, EceRecord& record) {
  record.agreed = 0;
  if (record.received.vendor_id == 0) {
    record.verdict = "standard RoCEv2: peer names no vendor";
  } else if (record.received.vendor_id != view.vendor_id) {
    // Between gateways this vendor ID belongs to the peer's program.
    record.agreed = ByDiscovery(view);
    record.verdict = record.agreed != 0
                         ? "agreed by discovery: reply carries its program's own ECE"
                         : "standard RoCEv2: peer answers with another vendor, ignored";
  } else if (!IsOffer(record.received, view)) {
    record.verdict = "standard RoCEv2: peer echoes our vendor ID, so it is no gateway";
  } else {
    const bool known = view.kind == PeerKind::kGateway;
    record.agreed = known ? wire::AgreedOptions(record.sent.options & record.received.options) : 0;
    record.verdict = record.agreed != 0 ? "agreed between gateways"
                                        : "standard RoCEv2: peer gateway agreed to no channel";
  }
}

}  // namespace

Ece EceForRequest(const Ece& application, const NegotiationView& view, EceRecord& record) {
  if (application.vendor_id != 0) {
    record.sent = Unchanged(application);
    record.agreed = ByDiscovery(view);
    record.verdict = record.agreed != 0
                         ? "agreed by discovery: request carries the program's own ECE"
                         : "request carries the program's own ECE";
  } else if (view.kind == PeerKind::kGateway) {
    record.sent = {view.vendor_id, view.own | wire::kOptionPresent};
    record.verdict = "offered to a gateway, which has not answered yet";
  } else {
    record.sent = {};
    record.verdict = "standard RoCEv2: request names no vendor";
  }
  return record.sent;
}

void EceFromReply(const Ece& received, const NegotiationView& view, EceRecord& record) {
  record.received = received;
  if (IsOffer(record.sent, view)) return TakeAnswer(view, record);
  if (record.sent.vendor_id != 0) {
    if (record.agreed != 0) return;
    record.verdict = received.vendor_id == record.sent.vendor_id
                         ? "peer answered the program's own ECE"
                         : "peer declined the program's own ECE";
  } else {
    // Some passive sides leave options without a vendor, or name their vendor unasked: neither is a
    // promise.
    record.verdict = received.vendor_id == 0
                         ? "standard RoCEv2: no vendor on either side"
                         : "standard RoCEv2: vendor named without being asked, ignored";
  }
}

void EceFromRequest(const Ece& received, EceRecord& record) {
  record.received = received;
  record.verdict = received.vendor_id == 0
                       ? "standard RoCEv2: peer names no vendor"
                       : "standard RoCEv2: peer's vendor options wait for the reply";
}

uint32_t WouldAgree(const EceRecord& record, const NegotiationView& view) {
  if (view.kind != PeerKind::kGateway) return 0;
  if (IsOffer(record.received, view))
    return wire::AgreedOptions(record.received.options & view.own & view.peer);
  // A gateway that knows us offers options; any other vendor's ID comes from its program.
  return record.received.vendor_id != 0 && record.received.vendor_id != view.vendor_id
             ? ByDiscovery(view)
             : 0;
}

Ece EceForReply(const Ece& application, const NegotiationView& view, EceRecord& record) {
  record.agreed = WouldAgree(record, view);
  if (application.vendor_id != 0) {
    record.sent = Unchanged(application);
    // A program that sets the gateway's own vendor ID may reduce the options.
    if (IsOffer(record.sent, view))
      record.agreed = wire::AgreedOptions(record.agreed & record.sent.options);
    record.verdict = record.agreed != 0 ? "agreed by discovery: reply carries the program's own ECE"
                                        : "reply carries the program's own ECE";
    return record.sent;
  }
  if (IsOffer(record.received, view)) {
    record.sent = {view.vendor_id, record.agreed | wire::kOptionPresent};
    if (record.agreed != 0) {
      record.verdict = "agreed between gateways";
    } else if (view.kind != PeerKind::kGateway) {
      record.verdict = "standard RoCEv2: peer offers, but did not answer as a gateway";
    } else {
      record.verdict = "standard RoCEv2: no channel in common with the peer gateway";
    }
    return record.sent;
  }
  record.sent = {record.received.vendor_id, 0};
  if (record.agreed != 0) {
    record.verdict = "agreed by discovery: request carried its program's own ECE";
  } else {
    record.verdict = record.received.vendor_id == 0
                         ? "standard RoCEv2: peer names no vendor"
                         : "standard RoCEv2: peer's vendor options declined";
  }
  return record.sent;
}

}  // namespace rocegw::cm
