// SPDX-License-Identifier: Apache-2.0
// Common arrival steps of REQ and SIDR_REQ: finds the listener and creates the id that represents
// the request to its program. The checks are those of rdma_cm on Linux.
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
  kListener,    // found, with space in its backlog
  kNoService,   // the service ID is not one of rdma_cm
  kNoListener,  // no listener
  kRefused,     // a listener for other addresses or another kind of connection
  kFull,        // backlog or a limit: no answer, the peer will try again
};

IncomingVerdict Match(Core& core, const Inbound& in, uint64_t service_id, QpType type,
                      std::span<const uint8_t, wire::kIpCmHeaderLength> header, Incoming& out);

// Creates an id and its connection, bound to the address at which the request arrived and with the
// path back. The caller sets kReqReceived or kSidrReqReceived. nullptr: a limit is reached.
Connection* NewPassive(Core& core, const Incoming& incoming, const Inbound& in, uint32_t flow_label,
                       uint8_t traffic_class, Step& step);

}  // namespace rocegw::cm
