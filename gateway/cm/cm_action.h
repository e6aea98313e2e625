// SPDX-License-Identifier: Apache-2.0
// Actions of the connection manager, as values. The caller sends the datagrams from QP1, delivers
// the events to the programs, and keeps quarantined QPNs from being used again. Each list is in
// chronological order. The caller owns the lists and clears them.
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
  uint32_t name = 0;  // name of the id (CmEngine::Name), for kConnectRequest of the listener
  EventType type = EventType::kAddrResolved;
  int status = 0;  // 0, -errno, a REJ reason (kRejected) or a SIDR status (kUnreachable of a UD id)
  ConnectParams param;  // private data covers the whole zero-padded area of the message
  IdInfo info;
};

// MAD of 256 bytes from QP1 to a peer's GSI (Q_Key 0x80010000, P_Key 0xFFFF). The destination may
// be a local address.
struct SendMad {
  wire::Path path;
  Qpn destination = kGsiQpn;
  wire::MadBytes bytes{};
};

// QPN that the peer may still use for the old connection: it must not be assigned again before
// `until`.
struct QuarantineQpn {
  SessionId owner;
  Qpn qpn;
  TimePoint until;
};

// Report that this gateway starts or stops asking a peer, or knows it as a gateway. Workers
// rate-limit discovery datagrams of such peers apart from those of strangers.
struct Acquaintance {
  wire::Gid peer;
  bool known = false;
};

// Report that a peer has not answered a connection request for longer than a loss explains.
// Repeated with each resend.
struct SilentPeer {
  SessionId owner;
  wire::Gid peer;
  Duration waited;
};

struct CmActions {
  std::vector<Acquaintance> acquaintances;  // must be carried out before `mads`
  std::vector<SendMad> mads;
  std::vector<CmEvent> events;
  std::vector<QuarantineQpn> quarantined;
  std::vector<wire::Gid> settled;  // peers whose kind is now known
  std::vector<SilentPeer> silent;

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
    silent.clear();
  }
};

}  // namespace rocegw::cm
