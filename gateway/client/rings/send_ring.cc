// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/send_ring.h"

#include <cerrno>
#include <cstring>

#include "gateway/client/device/later_verbs.h"
#include "gateway/client/rings/address_handle.h"
#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

namespace {

constexpr uint32_t Bit(uint32_t opcode) { return 1u << opcode; }
constexpr uint32_t kSends = Bit(IBV_WR_SEND) | Bit(IBV_WR_SEND_WITH_IMM);
constexpr uint32_t kWrites = Bit(IBV_WR_RDMA_WRITE) | Bit(IBV_WR_RDMA_WRITE_WITH_IMM);
constexpr uint32_t kFetchOperate =
    Bit(ROCEGW_WR_ATOMIC_SWAP) | Bit(ROCEGW_WR_ATOMIC_LOAD) | Bit(ROCEGW_WR_ATOMIC_STORE) |
    Bit(ROCEGW_WR_ATOMIC_FETCH_AND) | Bit(ROCEGW_WR_ATOMIC_FETCH_OR) |
    Bit(ROCEGW_WR_ATOMIC_FETCH_XOR) | Bit(ROCEGW_WR_ATOMIC_FETCH_SUB);
constexpr uint32_t kAtomics =
    Bit(IBV_WR_ATOMIC_CMP_AND_SWP) | Bit(IBV_WR_ATOMIC_FETCH_AND_ADD) | kFetchOperate;
constexpr uint32_t kAtomicWrite = Bit(kWrAtomicWrite);
constexpr uint32_t kOutbound = kSends | kWrites | Bit(IBV_WR_SEND_WITH_INV) | kAtomicWrite;
constexpr uint32_t kLocal = Bit(IBV_WR_BIND_MW) | Bit(IBV_WR_LOCAL_INV);
constexpr uint32_t kWithRemoteAddress = kWrites | kAtomics | Bit(IBV_WR_RDMA_READ) | kAtomicWrite;
constexpr uint32_t kOfEight = kAtomics | kAtomicWrite;
constexpr uint32_t kKnownFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;
constexpr uint32_t kPrivilegedQkey = 0x80000000u;

static_assert(int{IBV_SEND_FENCE} == int{ROCEGW_WQE_FENCE} &&
              int{IBV_SEND_SIGNALED} == int{ROCEGW_WQE_SIGNALED} &&
              int{IBV_SEND_SOLICITED} == int{ROCEGW_WQE_SOLICITED} &&
              int{IBV_SEND_INLINE} == int{ROCEGW_WQE_INLINE});
static_assert(int{IBV_WR_SEND_WITH_INV} == int{ROCEGW_WR_SEND_WITH_INV} &&
              int{IBV_WR_BIND_MW} == int{ROCEGW_WR_BIND_MW} &&
              int{IBV_WR_LOCAL_INV} == int{ROCEGW_WR_LOCAL_INV} &&
              int{IBV_WR_RDMA_READ} == int{ROCEGW_WR_RDMA_READ});
static_assert(kWrFlush == uint32_t{ROCEGW_WR_FLUSH} &&
              kWrAtomicWrite == uint32_t{ROCEGW_WR_ATOMIC_WRITE});
static_assert(sizeof(ibv_sge) == sizeof(rocegw_sge));

uint32_t OpcodesOf(const SendRing& ring) {
  constexpr uint32_t kReads = (kAtomics & ~kFetchOperate) | Bit(IBV_WR_RDMA_READ);
  constexpr uint32_t kReliable = (kOutbound & ~kAtomicWrite) | kReads | kLocal;
  const uint32_t operates = ring.operates ? kFetchOperate : 0;
  switch (ring.qp_type) {
    case IBV_QPT_RC:
      return kReliable | operates | (ring.placement ? kAtomicWrite : 0);
    case IBV_QPT_XRC_SEND:
      return kReliable;
    case IBV_QPT_UC:
      return kSends | kWrites | kLocal;
    case ROCEGW_QPT_ENDPOINT:
      return kSends | kWrites | kReads | operates;
    case IBV_QPT_XRC_RECV:
      return 0;
    default:
      return kSends;
  }
}

bool Full(SendRing& ring) {
  if (ring.producer - ring.released_seen <= ring.mask) return false;
  ring.released_seen = LoadAcquire(&ring.status->sq_released);
  return ring.producer - ring.released_seen > ring.mask;
}

// Copies `total` bytes of registered memory into the payload slot. Returns false if a key or range
// is not valid here. On-demand memory may be unmapped; the gateway handles that.
bool CopyRegistered(const SendRing& ring, const ibv_send_wr& wr, uint8_t* to) {
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length == 0) continue;
    const uint8_t* from = ring.keys->Locate(sge.lkey, ring.pd, sge.addr, sge.length, 0,
                                            IBV_ACCESS_ON_DEMAND | kAccessDeviceMemory);
    if (from == nullptr) return false;
    memcpy(to, from, sge.length);
    to += sge.length;
  }
  return true;
}

void CopyInline(const ibv_send_wr& wr, uint8_t* to) {
  for (int i = 0; i < wr.num_sge; ++i) {
    const ibv_sge& sge = wr.sg_list[i];
    if (sge.length == 0) continue;
    memcpy(to, reinterpret_cast<const void*>(sge.addr), sge.length);
    to += sge.length;
  }
}

// Writes a request that changes a memory window.
int WriteLocal(SendRing& ring, const ibv_send_wr& wr, rocegw_send_wqe* wqe) {
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) return EINVAL;
  wqe->u.bind = {};
  wqe->imm_or_rkey = wr.invalidate_rkey;
  if (wr.opcode == IBV_WR_BIND_MW) {
    const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
    if (wr.bind_mw.mw == nullptr || (info.mr == nullptr && info.length != 0)) return EINVAL;
    wqe->imm_or_rkey = wr.bind_mw.rkey;
    wqe->u.bind = {
        info.addr,           info.length,          info.mr != nullptr ? info.mr->lkey : 0,
        wr.bind_mw.mw->rkey, info.mw_access_flags, 0};
  }
  wqe->wr_id = wr.wr_id;
  wqe->opcode = static_cast<uint8_t>(wr.opcode);
  wqe->num_sge = 0;
  wqe->flags = static_cast<uint16_t>(wr.send_flags);
  if (ring.signal_all) wqe->flags |= ROCEGW_WQE_SIGNALED;
  return 0;
}

// Writes one WQE to the producer's slot. The slot belongs to the library until the index is stored.
int Write(SendRing& ring, const ibv_send_wr& wr, uint32_t ordering, uint32_t peer) {
  // As a number: a program may pass any value.
  uint32_t opcode;
  memcpy(&opcode, &wr.opcode, sizeof(opcode));
  if (opcode >= 32 || (OpcodesOf(ring) & Bit(opcode)) == 0) return EINVAL;
  const uint32_t slot = ring.producer & ring.mask;
  uint8_t* place = ring.slots + size_t{slot} * ring.stride;
  auto* wqe = reinterpret_cast<rocegw_send_wqe*>(place);
  const uint32_t kind = Bit(opcode);
  if ((wr.send_flags & ~kKnownFlags) != 0) return EINVAL;
  if ((kind & kLocal) != 0) return WriteLocal(ring, wr, wqe);
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > ring.max_sge) return EINVAL;
  uint64_t total = 0;
  for (int i = 0; i < wr.num_sge; ++i) total += wr.sg_list[i].length;
  if (total > ring.max_message) return EINVAL;
  if ((kind & kOfEight) != 0 && total != 8) return EINVAL;
  const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (is_inline && ((kind & kOutbound) == 0 || total > ring.max_inline)) return EINVAL;

  auto* sge = reinterpret_cast<rocegw_sge*>(place + sizeof(rocegw_send_wqe));
  uint8_t* payload = ring.payload + size_t{slot} * ring.payload_stride;

  uint32_t flags = wr.send_flags | ordering;
  if (ring.signal_all) flags |= IBV_SEND_SIGNALED;
  uint32_t sge_count = static_cast<uint32_t>(wr.num_sge);
  if (is_inline) {
    CopyInline(wr, payload);
    sge_count = total != 0 ? 1 : 0;
    if (sge_count != 0) *sge = {0, static_cast<uint32_t>(total), 0};
  } else {
    // Behind a fence the bytes may depend on an earlier READ.
    const bool fenced = (flags & (ROCEGW_WQE_FENCE | ROCEGW_WQE_FENCE_ALL)) != 0;
    if (!fenced && (kind & kOutbound) != 0 && total != 0 && total <= ring.payload_stride &&
        CopyRegistered(ring, wr, payload)) {
      flags |= ROCEGW_WQE_COPIED;
    }
    if (sge_count != 0) memcpy(sge, wr.sg_list, sge_count * sizeof(rocegw_sge));
  }

  wqe->wr_id = wr.wr_id;
  wqe->opcode = static_cast<uint8_t>(opcode);
  wqe->num_sge = static_cast<uint8_t>(sge_count);
  wqe->flags = static_cast<uint16_t>(flags);
  wqe->imm_or_rkey = wr.imm_data;  // invalidate_rkey is the other name of these bytes
  if (ring.qp_type == IBV_QPT_UD) {
    if (wr.wr.ud.ah == nullptr) return EINVAL;
    wqe->u.ud.av = reinterpret_cast<const AddressHandle*>(wr.wr.ud.ah)->vector;
    wqe->u.ud.remote_qpn = wr.wr.ud.remote_qpn;
    wqe->u.ud.remote_qkey =
        (wr.wr.ud.remote_qkey & kPrivilegedQkey) != 0 ? ring.qkey : wr.wr.ud.remote_qkey;
  } else if ((kind & kAtomics) != 0) {
    wqe->u.rdma = {wr.wr.atomic.remote_addr, wr.wr.atomic.compare_add, wr.wr.atomic.swap,
                   wr.wr.atomic.rkey, 0};
  } else if ((kind & kWithRemoteAddress) != 0) {
    wqe->u.rdma = {wr.wr.rdma.remote_addr, 0, 0, wr.wr.rdma.rkey, 0};
  } else {
    wqe->u.rdma = {};
  }
  if (peer != 0) wqe->u.rdma.peer = peer;
  if (ring.qp_type == IBV_QPT_XRC_SEND) wqe->u.rdma.peer = wr.qp_type.xrc.remote_srqn;
  return 0;
}

}  // namespace

SendPost::SendPost(SendRing& ring) : ring_(ring), first_((ring.lock.Lock(), ring.producer)) {}

SendPost::~SendPost() {
  const bool some = ring_.producer != first_;
  if (some) StoreRelease(&ring_.control->sq_producer, ring_.producer);
  ring_.lock.Unlock();
  if (some) Ring(ring_.bell);
}

int SendPost::error() const { return ring_.state < IBV_QPS_RTS ? EINVAL : 0; }

int SendPost::Add(const ibv_send_wr& wr, uint32_t flags, uint32_t peer) {
  // Requests name a peer if and only if the queue pair is an endpoint.
  if ((ring_.qp_type == ROCEGW_QPT_ENDPOINT) != (peer != 0)) return EINVAL;
  FetchLaterSlot(ring_);
  const int error = Full(ring_) ? ENOMEM : Write(ring_, wr, flags, peer);
  if (error == 0) ++ring_.producer;
  return error;
}

int SendPost::AddFlush(const ibv_send_wr& wr, uint32_t flags, uint64_t length, uint32_t feth) {
  if (!ring_.placement || ring_.qp_type != IBV_QPT_RC || length > ring_.max_message ||
      (wr.send_flags & ~kKnownFlags) != 0 || (wr.send_flags & IBV_SEND_INLINE) != 0) {
    return EINVAL;
  }
  if (Full(ring_)) return ENOMEM;
  const uint32_t slot = ring_.producer & ring_.mask;
  auto* wqe = reinterpret_cast<rocegw_send_wqe*>(ring_.slots + size_t{slot} * ring_.stride);
  *wqe = {};
  wqe->wr_id = wr.wr_id;
  wqe->opcode = ROCEGW_WR_FLUSH;
  wqe->flags = static_cast<uint16_t>(wr.send_flags | flags);
  if (ring_.signal_all) wqe->flags |= ROCEGW_WQE_SIGNALED;
  wqe->u.rdma = {wr.wr.rdma.remote_addr, length, feth, wr.wr.rdma.rkey, 0};
  ++ring_.producer;
  return 0;
}

void SendPost::Forget() { ring_.producer = first_; }

int PostSend(SendRing& ring, ibv_send_wr* wr, ibv_send_wr** bad) {
  SendPost post(ring);
  int error = post.error();
  while (error == 0 && wr != nullptr) {
    error = post.Add(*wr, ring.order_flags);
    if (error == 0) wr = wr->next;
  }
  if (error != 0) *bad = wr;
  return error;
}

}  // namespace rocegw::client
