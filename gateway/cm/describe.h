// SPDX-License-Identifier: Apache-2.0
// A connection as people see it: rows for the state service and one line of text. Copies;
// allocates.
#pragma once

#include <cstdint>
#include <string>

#include "gateway/base/ids.h"
#include "gateway/cm/cm_id.h"
#include "gateway/cm/cm_types.h"
#include "gateway/cm/connection/connection.h"

namespace rocegw::cm {

struct ConnectionRow {
  SessionId owner;
  CmHandle id;  // 0: its program is gone
  const char* state = "";
  bool active = false;
  bool datagram = false;  // a SIDR exchange
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint64_t remote_ca_guid = 0;
  Qpn local_qpn;
  Qpn remote_qpn;
  wire::Gid local_gid;
  wire::Gid remote_gid;
  uint32_t path_mtu = 0;  // bytes
  EceRecord ece;          // what was sent, received and concluded
  uint16_t reason = 0;    // of the last REJ either way, 0: none
  TimePoint created;
};

// An id, listeners among them.
struct IdRow {
  SessionId owner;
  CmHandle id;
  const char* state = "";
  IdInfo info;
  uint32_t backlog = 0;           // listeners
  uint32_t waiting_requests = 0;  // of the backlog
};

ConnectionRow RowOf(const Connection& connection);
IdRow RowOf(const Id& id, const IdInfo& info);

// e.g. "active established 192.0.2.1>192.0.2.2 comm=0x1>0x2 qp=0x12>0x13 mtu=1024 ece: sent 0x0/0x0
// received 0x15b3/0x1, standard RoCEv2: peer's vendor options declined".
std::string Describe(const ConnectionRow& row);

// Reason of a REJ in words; "reserved" for numbers without a meaning.
const char* RejectReasonText(uint16_t reason);

}  // namespace rocegw::cm
