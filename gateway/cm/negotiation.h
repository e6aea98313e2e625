// SPDX-License-Identifier: Apache-2.0
// What is said and understood in the vendor ID and attribute modifier of REQ and REP (enhanced
// connection establishment). RNICs use them to switch on features of their own; promising one of
// those would break the connection, so towards them the gateway names no vendor of its own and no
// options:
//  - REQ: vendor 0, options 0, unless the program set its own ECE, which travels unchanged;
//  - REP: the vendor ID of the REQ with options 0, as every RDMA device without ECE answers; a
//  requester takes that, like
//    vendor 0, as "none of the options";
//  - whatever arrives is recorded and never a reason to refuse.
// What was sent, received and concluded is kept per connection for people to read.
#pragma once

#include "gateway/cm/cm_types.h"

namespace rocegw::cm {

struct EceRecord {
  Ece sent;
  Ece received;
  const char* verdict = "nothing exchanged yet";  // static text, one line
};

Ece EceForRequest(const Ece& application, EceRecord& record);
void EceFromRequest(const Ece& received, EceRecord& record);
Ece EceForReply(const Ece& application, EceRecord& record);
void EceFromReply(const Ece& received, EceRecord& record);

}  // namespace rocegw::cm
