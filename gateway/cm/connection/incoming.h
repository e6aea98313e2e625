// SPDX-License-Identifier: Apache-2.0
// What REQ and SIDR_REQ have in common on arrival: which listener they are for, and the new id that
// represents them to its program. The checks are those of rdma_cm on Linux.
#pragma once

#include <cstdint>
#include <span>

#include "gateway/cm/core.h"
#include "gateway/wire/mad.h"

namespace rocegw::cm {

struct Incoming {
  Id* listener = nullptr;
  const LocalAddress* local = nullptr;
  wire::IpCmHeader header;
  uint16_t port = 0;
};

enum class IncomingVerdict : uint8_t {
  kListener,    // found, and it has room
  kNoService,   // not a service that anybody could listen on
  kNoListener,  // nobody does
  kRefused,     // somebody does, but not for these addresses or this kind of connection
  kFull,        // backlog or a limit: say nothing, the peer will try again
};

IncomingVerdict Match(Core& core, const Inbound& in, uint64_t service_id, QpType type,
                      std::span<const uint8_t, wire::kIpCmHeaderLength> header, Incoming& out);

// The id and its connection (kReqReceived or kSidrReqReceived is the caller's to set), bound to the
// address the request came to, with the path back. nullptr: a limit is reached.
Connection* NewPassive(Core& core, const Incoming& incoming, const Inbound& in, uint32_t flow_label,
                       uint8_t traffic_class, Step& step);

}  // namespace rocegw::cm
