// SPDX-License-Identifier: Apache-2.0
#include "gateway/verbs/work_request.h"

#include "gateway/shm/untrusted.h"

namespace rocegw::verbs {
namespace {

uint64_t SumLengths(std::span<const rocegw_sge> sges) {
  uint64_t total = 0;
  for (const rocegw_sge& sge : sges) total += sge.length;
  return total;
}

bool OpcodeAllowed(const QpMessageConfig& config, uint8_t opcode) {
  const QpType type = config.type;
  switch (opcode) {
    case ROCEGW_WR_SEND:
    case ROCEGW_WR_SEND_WITH_IMM:
      return true;
    case ROCEGW_WR_RDMA_WRITE:
    case ROCEGW_WR_RDMA_WRITE_WITH_IMM:
      return type != QpType::kUd;
    case ROCEGW_WR_RDMA_READ:
    case ROCEGW_WR_ATOMIC_CMP_AND_SWP:
    case ROCEGW_WR_ATOMIC_FETCH_AND_ADD:
      return type == QpType::kRc || type == QpType::kXrcSend || type == QpType::kEndpoint;
    case ROCEGW_WR_ATOMIC_SWAP:
    case ROCEGW_WR_ATOMIC_LOAD:
    case ROCEGW_WR_ATOMIC_STORE:
    case ROCEGW_WR_ATOMIC_FETCH_AND:
    case ROCEGW_WR_ATOMIC_FETCH_OR:
    case ROCEGW_WR_ATOMIC_FETCH_XOR:
    case ROCEGW_WR_ATOMIC_FETCH_SUB:
      return type == QpType::kRc || type == QpType::kEndpoint;
    case ROCEGW_WR_SEND_WITH_INV:
      return type == QpType::kRc || type == QpType::kXrcSend;
    case ROCEGW_WR_LOCAL_INV:
    case ROCEGW_WR_BIND_MW:
      return type != QpType::kUd && type != QpType::kEndpoint;
    case ROCEGW_WR_FLUSH:
    case ROCEGW_WR_ATOMIC_WRITE:
      return config.placement && type == QpType::kRc;
    default:
      return false;
  }
}

// Checks a request that was copied out; its SGE list still lies in `slot`.
WcStatus Judge(const QpMessageConfig& config, const QpPayloadConfig& payload,
               const rocegw_send_wqe& wqe, const uint8_t* slot, uint32_t ring_slot,
               SendRequest& out, std::span<rocegw_sge> sges) {
  out = SendRequest{};
  out.wr_id = wqe.wr_id;
  out.ring_slot = ring_slot;
  if (!OpcodeAllowed(config, wqe.opcode)) return WcStatus::kLocalQpOperation;
  if (wqe.num_sge > config.max_send_sge || wqe.num_sge > sges.size())
    return WcStatus::kLocalQpOperation;
  out.opcode = static_cast<SendOpcode>(wqe.opcode);
  out.flags = wqe.flags;
  out.immediate = wqe.imm_or_rkey;
  if (wqe.opcode == ROCEGW_WR_BIND_MW) {
    out.remote_address = wqe.u.bind.address;
    out.compare_add = wqe.u.bind.length;
    out.rkey = wqe.u.bind.lkey;
    out.peer = wqe.u.bind.window;
    out.swap = wqe.u.bind.access;
  }
  if (out.is_local()) return WcStatus::kSuccess;
  out.sge_count = wqe.num_sge;
  if (config.type != QpType::kUd) {
    out.remote_address = wqe.u.rdma.remote_address;
    out.rkey = wqe.u.rdma.rkey;
    out.peer = wqe.u.rdma.peer;
    out.compare_add = wqe.u.rdma.compare_add;
    out.swap = wqe.u.rdma.swap;
  }
  if (out.opcode == SendOpcode::kFlush) {
    // A FLUSH moves no bytes.
    if (out.sge_count != 0) return WcStatus::kLocalQpOperation;
    return out.compare_add > kMaxMessage ? WcStatus::kLocalLength : WcStatus::kSuccess;
  }
  shm::CopyOut(sges.data(), slot + sizeof wqe, size_t{wqe.num_sge} * sizeof(rocegw_sge));
  const uint64_t total = SumLengths(sges.first(wqe.num_sge));
  if (total > kMaxMessage) return WcStatus::kLocalLength;
  out.length = static_cast<uint32_t>(total);
  if ((out.is_atomic() || out.is_placement()) && total != 8) return WcStatus::kLocalLength;
  if ((wqe.flags & (ROCEGW_WQE_INLINE | ROCEGW_WQE_COPIED)) != 0) {
    if (out.reads_remote()) return WcStatus::kLocalQpOperation;
    if (total > payload.sq_payload_stride) return WcStatus::kLocalLength;
    out.ring_payload =
        payload.sq_payload +
        static_cast<size_t>(ring_slot & (payload.sq_entries - 1)) * payload.sq_payload_stride;
  }
  return WcStatus::kSuccess;
}

}  // namespace

WcStatus ParseSend(const QpMessageConfig& config, const QpPayloadConfig& payload,
                   const uint8_t* slot, uint32_t ring_slot, SendRequest& out,
                   std::span<rocegw_sge> sges) {
  rocegw_send_wqe wqe;
  shm::CopyOut(&wqe, slot, sizeof wqe);
  return Judge(config, payload, wqe, slot, ring_slot, out, sges);
}

WcStatus ParseDatagram(const QpMessageConfig& config, const QpPayloadConfig& payload,
                       const uint8_t* slot, uint32_t ring_slot, DatagramRequest& out,
                       std::span<rocegw_sge> sges) {
  rocegw_send_wqe wqe;
  shm::CopyOut(&wqe, slot, sizeof wqe);
  out.av = wqe.u.ud.av;
  out.remote_qpn = Qpn{wqe.u.ud.remote_qpn & 0xFFFFFF};
  out.remote_qkey = wqe.u.ud.remote_qkey;
  return Judge(config, payload, wqe, slot, ring_slot, out, sges);
}

WcStatus ParseReceive(const QpMessageConfig& config, const uint8_t* slot, uint32_t ring_slot,
                      ReceiveRequest& out, std::span<rocegw_sge> sges) {
  rocegw_recv_wqe wqe;
  shm::CopyOut(&wqe, slot, sizeof wqe);
  out = ReceiveRequest{};
  out.wr_id = wqe.wr_id;
  out.ring_slot = ring_slot;
  if (wqe.num_sge > config.max_recv_sge || wqe.num_sge > sges.size())
    return WcStatus::kLocalQpOperation;
  out.sge_count = static_cast<uint8_t>(wqe.num_sge);
  shm::CopyOut(sges.data(), slot + sizeof wqe, size_t{wqe.num_sge} * sizeof(rocegw_sge));
  for (const rocegw_sge& sge : sges.first(wqe.num_sge)) out.capacity += sge.length;
  return WcStatus::kSuccess;
}

bool CheckKeys(const MrTable& regions, const KeyScope& scope, std::span<const rocegw_sge> sges,
               uint32_t access) {
  for (const rocegw_sge& sge : sges) {
    if (sge.length == 0) continue;
    if (regions.Find(MemoryKey{sge.lkey}, scope.session, scope.pd, access, sge.address,
                     sge.length) == nullptr) {
      return false;
    }
  }
  return true;
}

}  // namespace rocegw::verbs
