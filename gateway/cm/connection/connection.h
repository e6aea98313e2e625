// SPDX-License-Identifier: Apache-2.0
// One connection of the CM protocol: communication IDs, negotiated parameters, and the message that
// waits for an answer. Plain data; belongs to the engine, control thread. A connection may outlive
// the program's id: an orphan still disconnects and passes its timewait (IBTA 12.9).
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/cm/cm_types.h"
#include "gateway/cm/connection/cm_time.h"
#include "gateway/cm/connection/negotiation.h"
#include "gateway/wire/datagram.h"
#include "gateway/wire/mad.h"

namespace rocegw::cm {

// States of IBTA figures 114 and 115. A DREQ is answered at once, so there is no "DREQ received".
// SIDR exchanges use the same table and resend machinery.
enum class ConnectionState : uint8_t {
  kReqHeld,      // active: no REQ yet; waits for discovery or a slot at the listener
  kReqSent,      // active: REQ sent
  kReqDelayed,   // active: the peer asked for time with an MRA
  kReqReceived,  // passive: the program decides
  kRepSent,      // passive: REP sent
  kRepDelayed,   // passive: the peer asked for time
  kRepReceived,  // active: the program prepares its QP
  kEstablished,
  kDreqSent,
  kTimewait,
  kRejected,  // passive: refused, or withdrawn after a REP; kept to answer repetitions
  kSidrReqSent,
  kSidrReqReceived,
  kSidrReplied,  // kept to answer repetitions
  kCount,
};
inline constexpr size_t kConnectionStates = static_cast<size_t>(ConnectionState::kCount);

const char* StateName(ConnectionState state);

inline constexpr uint8_t kMaxRetryCount = 7;  // three bits on the wire
// Returns true for QPNs of programs: 0 and 1 are for management, the last is for multicast.
constexpr bool UsableQpn(Qpn qpn) {
  return qpn.value > kGsiQpn.value && qpn.value < kMulticastQpn.value;
}

class Orphans;
struct Connection;
// Place of an orphan in its list (orphans.h).
struct OrphanPlace {
  Orphans* list = nullptr;
  uint64_t pool = 0;
  Connection* previous = nullptr;
  Connection* next = nullptr;
};

struct Connection {
  uint32_t local_comm_id = 0;   // SIDR, active: the request ID
  uint32_t remote_comm_id = 0;  // 0: not known yet. SIDR, passive: the request ID
  ConnectionState state = ConnectionState::kReqSent;
  bool active = false;

  SessionId owner;
  CmHandle id;  // 0: orphan

  wire::Path path;  // path of its MADs towards the peer
  Qpn peer_gsi = kGsiQpn;
  uint64_t transaction_id = 0;
  uint64_t disconnect_transaction_id = 0;
  uint64_t remote_ca_guid = 0;

  Qpn local_qpn;
  Qpn remote_qpn;
  Psn local_psn;   // first PSN that this side expects
  Psn remote_psn;  // first PSN that the peer expects
  uint8_t path_mtu = 0;
  uint8_t responder_resources = 0;  // limits of our QP
  uint8_t initiator_depth = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  uint8_t ack_timeout = 0;            // code, for our QP
  uint8_t peer_response_timeout = 0;  // code, from the REQ: how long the peer takes to answer a REP
  uint8_t peer_cm_retries = 0;

  EceRecord ece;
  bool asked_for_time = false;  // an MRA was sent, so the peer repeats its message late
  bool fetched = false;         // passive: outside of the backlog; copy for the hand-over
  uint16_t reason = 0;          // reason of the last REJ received or sent
  TimePoint created;            // active: time of the first REQ

  uint64_t service_id = 0;  // active: service ID of the listener
  uint64_t ticket = 0;      // kReqHeld: waits for a slot (request_window.h)
  bool has_place = false;

  // Message that is sent again at `deadline`; in kReqHeld the parameters of the future REQ. In
  // timewait and kSidrReplied the deadline ends the state.
  std::variant<wire::MadBytes, ConnectParams> message;
  bool has_pending = false;
  ResendSchedule schedule;
  TimePoint deadline = kNever;
  OrphanPlace orphan;
};

}  // namespace rocegw::cm
