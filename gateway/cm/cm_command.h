// SPDX-License-Identifier: Apache-2.0
// What programs ask of the connection manager, as values: one command per rdma_cm call that the
// daemon has a part in. The session layer has checked that the handle and the QPN are the owner's.
// Errors come back at once as errno; what happens later arrives as events.
#pragma once

#include <cstdint>
#include <variant>

#include "gateway/base/ids.h"
#include "gateway/cm/cm_types.h"
#include "gateway/wire/mad.h"

namespace rocegw::cm {

struct CreateId {
  PortSpace port_space = PortSpace::kTcp;
  QpType qp_type = QpType::kRc;
};

// Ends whatever the id is doing: a request is withdrawn or refused, a connection disconnected, a
// listener closed.
struct DestroyId {};

struct SetOption {
  enum class Name : uint8_t { kTypeOfService, kReuseAddress, kAfOnly, kAckTimeout };
  Name name = Name::kTypeOfService;
  uint32_t value = 0;
};

// Port 0: any free one. A wildcard address stays unbound from devices.
struct Bind {
  Endpoint address;
};

// Two steps, because routing is outside: this one binds and waits; AddressResolved, from the caller
// that looked up the route, answers it. timeout_ms counts from here.
struct ResolveAddress {
  bool has_source = false;
  Endpoint source;
  Endpoint destination;
  uint32_t timeout_ms = 2000;
};
struct AddressResolved {
  int error = 0;          // errno: no route, neighbour silent, ...
  wire::Gid source;       // a local address
  wire::Gid destination;  // GID of the peer; for a loopback destination a local address
  uint8_t hop_limit = 64;
  uint32_t mtu = 0;     // of the route, bytes of IP packet; 0: the netdev's
  bool may_ask = true;  // the peer, whether it is a gateway: the program may talk to it
};

struct ResolveRoute {};

struct Listen {
  uint32_t backlog = 0;  // 0: the engine's maximum
};

struct Connect {
  ConnectParams param;
};

struct Accept {
  ConnectParams param;
};

struct Reject {
  wire::RejectReason reason = wire::RejectReason::kConsumer;
  PrivateData private_data;
};

// The active side's QP is ready: answers a CONNECT_RESPONSE.
struct Establish {};

struct Disconnect {};

// The passive side's QP has received data although no RTU came (IBV_EVENT_COMM_EST).
struct CommEstablished {};

// The QP of the connection is dead (retries spent, destroyed): tells the peer and the program.
struct QpFailed {};

// The program has taken the CONNECT_REQUEST that carried this id. Until then it counts against the
// listener's backlog, and it dies with the listener.
struct RequestFetched {};

struct CmCommand {
  SessionId owner;
  CmHandle id;
  std::variant<CreateId, DestroyId, SetOption, Bind, ResolveAddress, AddressResolved, ResolveRoute,
               Listen, Connect, Accept, Reject, Establish, Disconnect, CommEstablished, QpFailed,
               RequestFetched>
      body;
};

}  // namespace rocegw::cm
