// SPDX-License-Identifier: Apache-2.0
// Enumerations and attribute sets of the verbs. Values are those of <infiniband/verbs.h>, which the
// core does not include, so they cross the attach protocol unchanged.
#pragma once

#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/wire/datagram.h"

namespace rocegw::verbs {

enum class QpType : uint8_t {
  kRc = 2,
  kUc = 3,
  kUd = 4,
  kXrcSend = 9,
  kXrcReceive = 10,
  kEndpoint = 255
};
constexpr bool IsQpType(QpType type) {
  return (type >= QpType::kRc && type <= QpType::kUd) || type == QpType::kXrcSend ||
         type == QpType::kXrcReceive || type == QpType::kEndpoint;
}
constexpr bool IsXrc(QpType type) {
  return type == QpType::kXrcSend || type == QpType::kXrcReceive;
}
// Returns true for types with one peer that acknowledges.
constexpr bool IsReliable(QpType type) { return type == QpType::kRc || IsXrc(type); }

enum class QpState : uint8_t {
  kReset = 0,
  kInit = 1,
  kRtr = 2,
  kRts = 3,
  kSqd = 4,
  kSqe = 5,
  kError = 6
};

// Side that enforces the order that requests ask for (docs/user/ordering.md); values of enum
// rocegw_service_mode.
enum class ServiceMode : uint8_t {
  kByTarget = 0,     // the responder
  kByInitiator = 1,  // the requester: a message that must wait leaves after the others are answered
  kByLowerLayer = 2,  // the transport; as kByTarget where the transport keeps no order
  kUnordered = 3,     // none
};

// Rule by which a message to a group finds its member; values of enum rocegw_dispatch.
enum class Dispatch : uint8_t {
  kHash = 0,        // each sender has a fixed member
  kRoundRobin = 1,  // round-robin
  kDepth = 2,       // the member with the most receives posted
};

// enum ibv_access_flags
enum Access : uint32_t {
  kAccessLocalWrite = 1,
  kAccessRemoteWrite = 2,
  kAccessRemoteRead = 4,
  kAccessRemoteAtomic = 8,
  kAccessMwBind = 16,            // region: windows may be bound to it
  kAccessZeroBased = 32,         // window: addresses count from its first byte
  kAccessFlushGlobal = 256,      // FLUSH may make writes globally visible
  kAccessFlushPersistent = 512,  // FLUSH may make writes persistent; no region has it
};

// enum ibv_mw_type
enum class MwType : uint8_t { kType1 = 1, kType2 = 2 };

// enum ibv_wc_status
enum class WcStatus : uint8_t {
  kSuccess = 0,
  kLocalLength = 1,
  kLocalQpOperation = 2,
  kLocalProtection = 4,
  kFlush = 5,
  kMwBind = 6,
  kBadResponse = 7,
  kLocalAccess = 8,
  kRemoteInvalidRequest = 9,
  kRemoteAccess = 10,
  kRemoteOperation = 11,
  kRetryExceeded = 12,
  kRnrRetryExceeded = 13,
  kRemoteInvalidRdRequest = 15,
  kFatal = 19,
  kGeneral = 21,
};

// enum ibv_wc_opcode
enum class WcOpcode : uint8_t {
  kSend = 0,
  kRdmaWrite = 1,
  kRdmaRead = 2,
  kCompareSwap = 3,
  kFetchAdd = 4,
  kBindMw = 5,
  kLocalInvalidate = 6,
  kPlacementFlush = 8,
  kAtomicWrite = 9,
  kReceive = 128,
  kReceiveRdmaWithImm = 129,
};

// enum ibv_event_type, the events that the data path raises
enum class AsyncEvent : uint8_t {
  kCqError = 0,
  kQpFatal = 1,
  kQpRequestError = 2,
  kQpAccessError = 3,
  kCommEstablished = 4,
  kSqDrained = 5,
  kDeviceFatal = 8,
  kSrqLimitReached = 15,
  kLastWqeReached = 16,
};

// enum ibv_qp_attr_mask
enum QpAttrMask : uint32_t {
  kAttrState = 1u << 0,
  kAttrCurState = 1u << 1,
  kAttrEnSqdAsyncNotify = 1u << 2,
  kAttrAccessFlags = 1u << 3,
  kAttrPkeyIndex = 1u << 4,
  kAttrPort = 1u << 5,
  kAttrQkey = 1u << 6,
  kAttrAv = 1u << 7,
  kAttrPathMtu = 1u << 8,
  kAttrTimeout = 1u << 9,
  kAttrRetryCnt = 1u << 10,
  kAttrRnrRetry = 1u << 11,
  kAttrRqPsn = 1u << 12,
  kAttrMaxQpRdAtomic = 1u << 13,
  kAttrAltPath = 1u << 14,
  kAttrMinRnrTimer = 1u << 15,
  kAttrSqPsn = 1u << 16,
  kAttrMaxDestRdAtomic = 1u << 17,
  kAttrPathMigState = 1u << 18,
  kAttrCap = 1u << 19,
  kAttrDestQpn = 1u << 20,
};

// Attributes that modify_qp sets. The mask says which fields are valid.
struct QpAttributes {
  // Used by every message.
  Qpn dest_qpn;
  uint16_t access = 0;  // Access bits that peers have
  QpState state = QpState::kReset;
  uint8_t path_mtu = 3;  // enum ibv_mtu: 1 = 256 .. 5 = 4096 bytes
  uint8_t timeout = 0;   // 4.096 us * 2^timeout, 0 = none
  uint8_t retry_count = 0;
  uint8_t max_rd_atomic = 0;  // READs and atomics outstanding as requester

  uint8_t max_dest_rd_atomic = 0;  // READs and atomics outstanding as responder
  uint8_t min_rnr_timer = 0;       // IBTA table 46 code: 0 = 655.36 ms
  uint8_t rnr_retry = 0;           // 7 = unlimited
  uint8_t pkey_index = 0;
  uint8_t port = 1;
  uint8_t service_level = 0;
  uint8_t sgid_index = 0;
  QpState current_state = QpState::kReset;
  bool sqd_notify = false;   // RTS to SQD: raise an event when the send queue has drained
  bool sq_draining = false;  // in query results only: SQD, and requests that began are incomplete
  uint32_t qkey = 0;
  Psn rq_psn;
  Psn sq_psn;
  uint32_t flow_label = 0;
  // Path of a connected queue pair. The session computes it from the address vector: the source GID
  // by index, the source port by the flow label rule.
  wire::Path path;
};

constexpr uint32_t MtuBytes(uint8_t path_mtu) { return 128u << path_mtu; }

}  // namespace rocegw::verbs
