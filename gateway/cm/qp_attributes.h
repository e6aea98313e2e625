// SPDX-License-Identifier: Apache-2.0
// Results of rdma_init_qp_attr: the attributes with which a program moves its QP to INIT, RTR and
// RTS. Fields and bits have the values of struct ibv_qp_attr and enum ibv_qp_attr_mask and are
// computed as Linux does. Pure function of id and connection.
#pragma once

#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/cm/cm_id.h"
#include "gateway/cm/connection/connection.h"
#include "gateway/wire/gid.h"

namespace rocegw::cm {

enum class QpState : uint8_t { kInit = 1, kRtr = 2, kRts = 3 };  // enum ibv_qp_state

// Bits of enum ibv_qp_attr_mask that occur here.
enum QpAttributeMask : uint32_t {
  kQpState = 1u << 0,
  kQpAccessFlags = 1u << 3,
  kQpPkeyIndex = 1u << 4,
  kQpPort = 1u << 5,
  kQpQkey = 1u << 6,
  kQpAv = 1u << 7,
  kQpPathMtu = 1u << 8,
  kQpTimeout = 1u << 9,
  kQpRetryCount = 1u << 10,
  kQpRnrRetry = 1u << 11,
  kQpRqPsn = 1u << 12,
  kQpMaxRdAtomic = 1u << 13,
  kQpMinRnrTimer = 1u << 15,
  kQpSqPsn = 1u << 16,
  kQpMaxDestRdAtomic = 1u << 17,
  kQpDestQpn = 1u << 20,
};

// enum ibv_access_flags
enum QpAccess : uint32_t {
  kAccessRemoteWrite = 1u << 1,
  kAccessRemoteRead = 1u << 2,
  kAccessRemoteAtomic = 1u << 3,
};

struct QpAttributes {
  uint32_t mask = 0;
  QpState state = QpState::kInit;
  uint16_t pkey_index = 0;
  uint8_t port = 1;
  uint32_t access = 0;
  uint32_t qkey = 0;
  // Address vector, always global.
  wire::Gid destination_gid;
  uint8_t source_gid_index = 0;
  uint32_t flow_label = 0;
  uint8_t hop_limit = 64;
  uint8_t traffic_class = 0;
  uint8_t service_level = 0;

  uint8_t path_mtu = 0;
  Qpn dest_qpn;
  Psn rq_psn;
  Psn sq_psn;
  uint8_t max_dest_rd_atomic = 0;
  uint8_t max_rd_atomic = 0;
  uint8_t min_rnr_timer =
      0;  // 0 means 655.36 ms: the CM does not negotiate the timer and Linux leaves it 0
  uint8_t timeout = 0;
  uint8_t retry_count = 0;
  uint8_t rnr_retry = 0;
};

// Fills in the attributes. `connection` is nullptr while the id has none. EINVAL if the id is bound
// to no device, or the state lacks what `wanted` needs.
int InitQpAttributes(const Id& id, const Connection* connection, QpState wanted, QpAttributes& out);

}  // namespace rocegw::cm
