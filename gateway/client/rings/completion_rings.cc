// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/rings/completion_rings.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/rings/idle_poller.h"
#include "gateway/client/rings/monotonic_time.h"
#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

namespace {
// XRC receives belong to a shared receive queue, whichever queue pair received them.
uint32_t OwnerOf(const rocegw_cqe& cqe) {
  return (cqe.flags & ROCEGW_CQE_XRC) != 0 ? kReceiver | cqe.qp_handle : cqe.qpn;
}
uint32_t HashQpn(uint32_t qpn) { return (qpn * 0x9E3779B1u) >> 8; }
// Consecutive empty polls between two checks of the daemon, each of which is a system call.
constexpr uint32_t kQuietPolls = 1024;
constexpr uint32_t kWcFlags = ROCEGW_CQE_GRH | ROCEGW_CQE_WITH_IMM | ROCEGW_CQE_WITH_INV;
static_assert(int{IBV_WC_GRH} == int{ROCEGW_CQE_GRH} &&
              int{IBV_WC_WITH_IMM} == int{ROCEGW_CQE_WITH_IMM} &&
              int{IBV_WC_WITH_INV} == int{ROCEGW_CQE_WITH_INV});

// RoCE has no service levels on the wire. NVIDIA's RNICs report there in which kind of packet a
// datagram came, and UCX drops datagrams over IPv4 without it.
constexpr uint8_t kUdpDatagram = 8;  // RoCEv2
constexpr uint8_t kOverIpv6 = 1;
constexpr uint8_t kOverIpv4 = 2;

uint8_t ServiceLevelOf(const rocegw_cqe& cqe) {
  if ((cqe.flags & ROCEGW_CQE_GRH) == 0) return 0;
  return kUdpDatagram | ((cqe.flags & ROCEGW_CQE_IPV4) != 0 ? kOverIpv4 : kOverIpv6);
}
}  // namespace

int CompletionRings::Init(rocegw_cq_control* control, const void* rings, uint32_t entries,
                          uint32_t workers) {
  memset(static_cast<void*>(this), 0, sizeof(*this));
  consumer_ = static_cast<uint32_t*>(calloc(workers, sizeof(uint32_t)));
  if (consumer_ == nullptr) return ENOMEM;
  control_ = control;
  rings_ = static_cast<const uint8_t*>(rings);
  mask_ = entries - 1;
  workers_ = workers;
  return 0;
}

void CompletionRings::Destroy() {
  free(consumer_);
  free(qps_);
  consumer_ = nullptr;
  qps_ = nullptr;
}

void CompletionRings::Place(QpRings** table, uint32_t mask, QpRings* qp) {
  uint32_t index = HashQpn(qp->qpn) & mask;
  while (table[index] != nullptr) index = (index + 1) & mask;
  table[index] = qp;
}

int CompletionRings::Add(QpRings* qp, bool sends, bool receives) {
  SpinGuard guard(lock_);
  if (sends) qp->send_cq = this;
  if (receives) qp->receive_cq = this;
  if (FindQp(qp->qpn) == qp) return 0;
  if (qps_ == nullptr || 2 * (qp_count_ + 1) > qp_mask_ + 1) {
    const uint32_t size = qps_ == nullptr ? 8 : 2 * (qp_mask_ + 1);
    auto** bigger = static_cast<QpRings**>(calloc(size, sizeof(void*)));
    if (bigger == nullptr) return ENOMEM;
    for (uint32_t i = 0; qps_ != nullptr && i <= qp_mask_; ++i) {
      if (qps_[i] != nullptr) Place(bigger, size - 1, qps_[i]);
    }
    free(static_cast<void*>(qps_));
    qps_ = bigger;
    qp_mask_ = size - 1;
  }
  Place(qps_, qp_mask_, qp);
  ++qp_count_;
  return 0;
}

void CompletionRings::Remove(const QpRings* qp) {
  SpinGuard guard(lock_);
  if (qps_ == nullptr) return;
  uint32_t index = HashQpn(qp->qpn) & qp_mask_;
  while (qps_[index] != qp) {
    if (qps_[index] == nullptr) return;
    index = (index + 1) & qp_mask_;
  }
  qps_[index] = nullptr;
  --qp_count_;
  // Entries behind it may have been displaced by it: reinserts the rest of the cluster.
  for (index = (index + 1) & qp_mask_; qps_[index] != nullptr; index = (index + 1) & qp_mask_) {
    QpRings* moved = qps_[index];
    qps_[index] = nullptr;
    Place(qps_, qp_mask_, moved);
  }
}

QpRings* CompletionRings::FindQp(uint32_t qpn) const {
  if (qps_ == nullptr) return nullptr;
  for (uint32_t index = HashQpn(qpn) & qp_mask_; qps_[index] != nullptr;
       index = (index + 1) & qp_mask_) {
    if (qps_[index]->qpn == qpn) return qps_[index];
  }
  return nullptr;
}

const rocegw_cqe* CompletionRings::At(uint32_t worker, uint32_t index) const {
  const size_t slot = size_t{worker} * (size_t{mask_} + 1) + (index & mask_);
  return reinterpret_cast<const rocegw_cqe*>(rings_ + slot * sizeof(rocegw_cqe));
}

void CompletionRings::Purge(QpRings* qp, bool sends, bool receives) {
  SpinGuard guard(lock_);
  if (qp->worker >= workers_) return;
  uint32_t index = consumer_[qp->worker];
  for (; LoadAcquire(&At(qp->worker, index)->sequence) == index + 1; ++index) {
    const rocegw_cqe& cqe = *At(qp->worker, index);
    const bool done =
        qp->receive_purge.active && static_cast<int32_t>(index - qp->receive_purge.until) < 0;
    if (receives && !done && qp->shared != nullptr && cqe.qp_handle == qp->handle &&
        cqe.qpn == qp->qpn && (cqe.flags & ROCEGW_CQE_RECEIVE) != 0) {
      FreeShared(*qp->shared, cqe.ring_slot);
    }
  }
  if (sends) qp->send_purge = {index, true};
  if (receives) qp->receive_purge = {index, true};
}

// Returns false if the completion's owner is destroyed.
bool CompletionRings::Convert(const rocegw_cqe& cqe, uint32_t index, ibv_wc* wc) {
  QpRings* qp = FindQp(OwnerOf(cqe));
  if (qp == nullptr || qp->handle != cqe.qp_handle) return false;
  PurgeMark& purge = (cqe.flags & ROCEGW_CQE_RECEIVE) != 0 ? qp->receive_purge : qp->send_purge;
  if (purge.active) {
    if (static_cast<int32_t>(index - purge.until) < 0) return false;
    purge.active = false;
  }
  wc->wr_id = cqe.wr_id;
  wc->status = static_cast<ibv_wc_status>(cqe.status);
  wc->opcode = static_cast<ibv_wc_opcode>(cqe.opcode);
  wc->vendor_err = cqe.vendor_error;
  wc->byte_len = cqe.byte_length;
  wc->imm_data = cqe.imm_or_rkey;  // invalidated_rkey is the other name of these bytes
  wc->qp_num = cqe.qpn;
  wc->src_qp = cqe.source_qpn;
  wc->wc_flags = cqe.flags & kWcFlags;
  wc->pkey_index = 0;
  wc->slid = 0;
  wc->sl = ServiceLevelOf(cqe);
  wc->dlid_path_bits = 0;
  if ((cqe.flags & ROCEGW_CQE_RECEIVE) != 0) {
    if ((cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING) != 0 && cqe.status == IBV_WC_SUCCESS &&
        !ScatterPayload(
            qp->shared != nullptr ? static_cast<ReceiveSlots&>(*qp->shared) : qp->receive, cqe)) {
      wc->status = IBV_WC_LOC_PROT_ERR;
    }
    if (qp->shared != nullptr) {
      FreeShared(*qp->shared, cqe.ring_slot);
    } else {
      MarkPolled(qp->receive, cqe.ring_slot);
    }
  } else {
    MarkSendPolled(*qp, cqe.ring_slot);
  }
  return true;
}

int CompletionRings::Poll(int count, ibv_wc* wc, bool* quiet, uint64_t* made_ns) {
  int filled = 0;
  bool rest = false;
  if (polling_.empty_polls != 0) ThisPoller().TurnTo(this);
  {
    SpinGuard guard(lock_);
    if (daemon_gone_) {
      if (quiet != nullptr) *quiet = true;
      return 0;
    }
    if (suspended_) return 0;
    uint32_t worker = next_worker_;
    for (uint32_t visited = 0; visited < workers_ && filled < count; ++visited) {
      const uint32_t first = consumer_[worker];
      uint32_t index = first;
      for (; filled < count; ++index) {
        const rocegw_cqe* cqe = At(worker, index);
        if (LoadAcquire(&cqe->sequence) != index + 1) break;
        if (!Convert(*cqe, index, &wc[filled])) continue;
        if (made_ns != nullptr) *made_ns = cqe->timestamp_ns;
        ++filled;
      }
      if (index != first) {
        consumer_[worker] = index;
        StoreRelease(&control_->worker[worker].consumer, index);
      }
      worker = worker + 1 == workers_ ? 0 : worker + 1;
    }
    next_worker_ = next_worker_ + 1 >= workers_ ? 0 : next_worker_ + 1;
    if (filled != 0) {
      empty_polls_ = 0;
    } else {
      ++empty_polls_;
      rest = polling_.empty_polls != 0 && empty_polls_ % polling_.empty_polls == 0;
      if (quiet != nullptr) *quiet = empty_polls_ % kQuietPolls == 0;
    }
  }
  if (rest) Rest();
  return filled;
}

bool CompletionRings::AnyReady() {
  SpinGuard guard(lock_);
  // While the rings move, the program must not sleep.
  if (suspended_) return true;
  for (uint32_t worker = 0; worker < workers_; ++worker) {
    const uint32_t index = consumer_[worker];
    if (LoadAcquire(&At(worker, index)->sequence) == index + 1) return true;
  }
  return false;
}

void CompletionRings::Rest() {
  IdlePoller& poller = ThisPoller();
  poller.Use(polling_.mode);
  if (!may_sleep_ || !poller.ShouldSleep(MonotonicNs())) {
    YieldCore(poller);
    return;
  }
  StoreOrdered(&control_->sleeping, 1U);
  FullFence();
  if (!AnyReady()) SleepUntilWoken(&control_->sleeping, 1);
}

void CompletionRings::Suspend() {
  SpinGuard guard(lock_);
  suspended_ = true;
}

void CompletionRings::Resume(const void* rings, uint32_t entries) {
  SpinGuard guard(lock_);
  suspended_ = false;
  if (rings == nullptr) return;
  rings_ = static_cast<const uint8_t*>(rings);
  mask_ = entries - 1;
}

void CompletionRings::Arm(bool solicited_only) {
  if (!solicited_only) {
    StoreOrdered(&control_->arm, uint32_t{ROCEGW_CQ_ARM_ANY});
  } else {
    uint32_t unarmed = ROCEGW_CQ_UNARMED;
    __atomic_compare_exchange_n(&control_->arm, &unarmed, uint32_t{ROCEGW_CQ_ARM_SOLICITED}, false,
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  // The next poll must see every completion whose writer found the queue unarmed.
  FullFence();
}

}  // namespace rocegw::client
