// SPDX-License-Identifier: Apache-2.0
// Commands of programs to the connection manager, as values: one per rdma_cm call that needs the
// daemon. The session layer has checked that handle and QPN belong to the caller. Errors return at
// once as errno; later results arrive as events.
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

// Destroys the id in any state: withdraws or refuses a request, disconnects a connection, closes a
// listener.
struct DestroyId {};

struct SetOption {
  enum class Name : uint8_t { kTypeOfService, kReuseAddress, kAfOnly, kAckTimeout };
  Name name = Name::kTypeOfService;
  uint32_t value = 0;
};

// Binds an id. Port 0: any free port. A wildcard address binds no device.
struct Bind {
  Endpoint address;
};

// Starts address resolution, in two steps because routing is outside: this command binds and waits;
// the caller that looked up the route answers with AddressResolved. timeout_ms counts from here.
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
  uint32_t mtu = 0;     // path MTU of the route in bytes of IP packet; 0: that of the netdev
  bool may_ask = true;  // discovery may ask the peer: the program may talk to it
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

// Reports that the QP of the active side is ready; answers a CONNECT_RESPONSE.
struct Establish {};

struct Disconnect {};

// Reports that the QP of the passive side received data before any RTU (IBV_EVENT_COMM_EST).
struct CommEstablished {};

// Reports that the connection's QP failed or was destroyed: the peer and the program are notified.
struct QpFailed {};

// Reports that the program fetched the CONNECT_REQUEST with this id. Until then the id counts
// against the listener's backlog and is destroyed with the listener.
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
