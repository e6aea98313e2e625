// SPDX-License-Identifier: Apache-2.0
// What the connection manager wants done, as values: the caller sends the datagrams from QP1,
// delivers the events to the programs, and keeps the QPNs from being used again. Within each list
// order is the order of happening. The caller owns the lists and clears them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/time.h"
#include "gateway/cm/cm_types.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::cm {

// enum rdma_cm_event_type
enum class EventType : uint8_t {
  kAddrResolved = 0,
  kAddrError = 1,
  kRouteResolved = 2,
  kRouteError = 3,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kConnectError = 6,
  kUnreachable = 7,
  kRejected = 8,
  kEstablished = 9,
  kDisconnected = 10,
  kDeviceRemoval = 11,
  kMulticastJoin = 12,
  kMulticastError = 13,
  kAddrChange = 14,
  kTimewaitExit = 15,
};

struct CmEvent {
  SessionId owner;
  CmHandle id;        // for kConnectRequest the new id
  CmHandle listener;  // kConnectRequest only
  uint32_t name = 0;  // of the id, for kConnectRequest of the listener (CmEngine::Name)
  EventType type = EventType::kAddrResolved;
  int status = 0;  // 0, -errno, a REJ reason (kRejected) or a SIDR status (kUnreachable of a UD id)
  ConnectParams param;  // private data is the whole zero-padded area of the message
  IdInfo info;
};

// 256 bytes from QP1 to a peer's GSI (Q_Key 0x80010000, P_Key 0xFFFF). The destination may be a
// local address.
struct SendMad {
  wire::Path path;
  Qpn destination = kGsiQpn;
  wire::MadBytes bytes{};
};

// The peer may still believe in this QPN: do not hand it out before.
struct QuarantineQpn {
  SessionId owner;
  Qpn qpn;
  TimePoint until;
};

// A peer that this gateway asks, or knows as a gateway, from now on, or no longer. Workers let its
// discovery datagrams pass apart from those of strangers.
struct Acquaintance {
  wire::Gid peer;
  bool known = false;
};

struct CmActions {
  std::vector<Acquaintance> acquaintances;  // to be carried out before `mads`
  std::vector<SendMad> mads;
  std::vector<CmEvent> events;
  std::vector<QuarantineQpn> quarantined;
  std::vector<wire::Gid> settled;  // peers of which it is known now whether they are gateways

  void Reserve(size_t each) {
    mads.reserve(each);
    events.reserve(each);
    quarantined.reserve(each);
  }
  void Clear() {
    acquaintances.clear();
    mads.clear();
    events.clear();
    quarantined.clear();
    settled.clear();
  }
};

}  // namespace rocegw::cm
