// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/negotiation.h"

namespace rocegw::cm {
namespace {
constexpr uint32_t kVendorMask = 0xFFFFFF;
}  // namespace

Ece EceForRequest(const Ece& application, EceRecord& record) {
  record.sent = {application.vendor_id & kVendorMask,
                 application.vendor_id != 0 ? application.options : 0};
  record.verdict = record.sent.vendor_id != 0 ? "request carries the program's own ECE"
                                              : "standard RoCEv2: request names no vendor";
  return record.sent;
}

void EceFromRequest(const Ece& received, EceRecord& record) {
  record.received = received;
  record.verdict = received.vendor_id == 0
                       ? "standard RoCEv2: peer names no vendor"
                       : "standard RoCEv2: peer's vendor options wait for the reply";
}

Ece EceForReply(const Ece& application, EceRecord& record) {
  if (application.vendor_id != 0) {
    record.sent = {application.vendor_id & kVendorMask, application.options};
    record.verdict = "reply carries the program's own ECE";
    return record.sent;
  }
  record.sent = {record.received.vendor_id, 0};
  record.verdict = record.received.vendor_id == 0
                       ? "standard RoCEv2: peer names no vendor"
                       : "standard RoCEv2: peer's vendor options declined";
  return record.sent;
}

void EceFromReply(const Ece& received, EceRecord& record) {
  record.received = received;
  if (record.sent.vendor_id != 0) {
    record.verdict = received.vendor_id == record.sent.vendor_id
                         ? "peer answered the program's own ECE"
                         : "peer declined the program's own ECE";
  } else {
    // Some passive sides leave options without a vendor, or name themselves unasked: neither
    // promises anything.
    record.verdict = received.vendor_id == 0
                         ? "standard RoCEv2: no vendor on either side"
                         : "standard RoCEv2: vendor named without being asked, ignored";
  }
}

}  // namespace rocegw::cm
