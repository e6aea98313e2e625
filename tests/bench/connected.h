// SPDX-License-Identifier: Apache-2.0
// Connection of queue pairs in benchmark programs. Many queue pairs are connected to themselves:
// all packets pass the gateway, and no peer is needed.
#pragma once

#include <infiniband/verbs.h>

// Moves an RC queue pair from RESET to RTS, with its peer at `gid`. Returns false with errno.
inline bool ConnectTo(ibv_qp* qp, uint32_t peer, const ibv_gid& gid, uint8_t gid_index,
                      ibv_mtu path_mtu) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
    return false;
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = path_mtu;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = gid;
  attr.ah_attr.grh.sgid_index = gid_index;
  attr.ah_attr.grh.hop_limit = 64;
  if (ibv_modify_qp(qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
    return false;
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  return ibv_modify_qp(qp, &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

inline bool ConnectToItself(ibv_qp* qp, const ibv_gid& gid, uint8_t gid_index, ibv_mtu path_mtu) {
  return ConnectTo(qp, qp->qp_num, gid, gid_index, path_mtu);
}
