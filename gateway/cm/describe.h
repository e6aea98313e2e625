// SPDX-License-Identifier: Apache-2.0
// Rows about connections for the state service, and one line of text. Copies; allocates.
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
  CmHandle id;  // 0: its program has exited
  const char* state = "";
  bool active = false;
  bool datagram = false;  // SIDR exchange
  uint32_t local_comm_id = 0;
  uint32_t remote_comm_id = 0;
  uint64_t remote_ca_guid = 0;
  Qpn local_qpn;
  Qpn remote_qpn;
  wire::Gid local_gid;
  wire::Gid remote_gid;
  uint32_t path_mtu = 0;  // bytes
  EceRecord ece;          // record of the option exchange
  uint16_t reason = 0;    // reason of the last REJ in either direction, 0: none
  TimePoint created;
};

// Row of an id, listeners included.
struct IdRow {
  SessionId owner;
  CmHandle id;
  const char* state = "";
  IdInfo info;
  uint32_t backlog = 0;           // listeners only
  uint32_t waiting_requests = 0;  // part of the backlog
};

ConnectionRow RowOf(const Connection& connection);
IdRow RowOf(const Id& id, const IdInfo& info);

// Returns a line such as "active established 192.0.2.1>192.0.2.2 comm=0x1>0x2 qp=0x12>0x13 mtu=1024
// ece: sent 0x0/0x0 received 0x15b3/0x1, standard RoCEv2: peer's vendor options declined".
std::string Describe(const ConnectionRow& row);

// Returns the reason of a REJ in words; "reserved" for undefined numbers.
const char* RejectReasonText(uint16_t reason);

}  // namespace rocegw::cm
