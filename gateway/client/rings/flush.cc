// SPDX-License-Identifier: Apache-2.0
// Completions of requests whose daemon is lost. The library uses only memory that it writes itself
// and completions that it has polled; the daemon's last output is trusted only to say that a
// request without a completion is done.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "gateway/client/rings/completion_rings.h"
#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

namespace {

void FlushOne(const QpRings& qp, uint64_t wr_id, ibv_wc_opcode opcode, ibv_wc* wc) {
  *wc = {};
  wc->wr_id = wr_id;
  wc->status = IBV_WC_WR_FLUSH_ERR;
  wc->opcode = opcode;
  wc->qp_num = qp.qpn;
}

bool Below(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

}  // namespace

int ExpectSendsInAnyOrder(QpRings& qp) {
  const size_t bytes = (size_t{qp.send.mask} + 1) * sizeof(uint32_t);
  qp.sends_polled_at = static_cast<uint32_t*>(malloc(bytes));
  if (qp.sends_polled_at == nullptr) return ENOMEM;
  // No slot has the highest index before all indexes have been used once.
  memset(qp.sends_polled_at, 0xFF, bytes);
  return 0;
}

int CompletionRings::FlushSends(QpRings& qp, int count, ibv_wc* wc) {
  SendRing& ring = qp.send;
  SpinGuard guard(ring.lock);
  const uint32_t oldest = ring.producer - ring.mask - 1;
  const bool in_order = qp.sends_polled_at == nullptr;
  uint32_t index = in_order && Below(oldest, qp.sends_polled) ? qp.sends_polled : oldest;
  const uint32_t released = LoadAcquire(&ring.status->sq_released);
  int filled = 0;
  for (; index != ring.producer && filled < count; ++index) {
    const uint32_t slot = index & ring.mask;
    if (!in_order && qp.sends_polled_at[slot] == index) continue;
    rocegw_send_wqe wqe;
    memcpy(&wqe, ring.slots + size_t{slot} * ring.stride, sizeof(wqe));
    const bool done_in_silence = Below(index, released) && (wqe.flags & ROCEGW_WQE_SIGNALED) == 0;
    if (done_in_silence) continue;
    FlushOne(qp, wqe.wr_id, IBV_WC_SEND, &wc[filled++]);
    MarkSendPolled(qp, index);
  }
  return filled;
}

// Flushes receives that several queue pairs share, through the first queue pair that asks.
int CompletionRings::FlushShared(QpRings& qp, int count, ibv_wc* wc) {
  SharedRing& ring = *qp.shared;
  int filled = 0;
  for (uint32_t slot = 0; slot <= ring.mask && filled < count; ++slot) {
    uint64_t wr_id = 0;
    if (TakeBack(ring, slot, &wr_id)) FlushOne(qp, wr_id, IBV_WC_RECV, &wc[filled++]);
  }
  return filled;
}

int CompletionRings::FlushReceives(QpRings& qp, int count, ibv_wc* wc) {
  if (qp.shared != nullptr) return FlushShared(qp, count, wc);
  ReceiveRing& ring = qp.receive;
  if (ring.slots == nullptr) return 0;
  SpinGuard guard(ring.lock);
  int filled = 0;
  for (uint32_t index = ring.polled; index != ring.producer && filled < count;) {
    const uint32_t slot = index & ring.mask;
    if (ring.early != nullptr && ring.early[slot] != 0) {
      ++index;
      continue;
    }
    rocegw_recv_wqe wqe;
    memcpy(&wqe, ring.slots + size_t{slot} * ring.stride, sizeof(wqe));
    FlushOne(qp, wqe.wr_id, IBV_WC_RECV, &wc[filled++]);
    MarkPolled(ring, index);
    // That may have released later ones too, and cleared their marks.
    index = Below(index, ring.polled) ? ring.polled : index + 1;
  }
  return filled;
}

int CompletionRings::Flush(int count, ibv_wc* wc) {
  SpinGuard guard(lock_);
  daemon_gone_ = true;
  int filled = 0;
  for (uint32_t i = 0; qps_ != nullptr && i <= qp_mask_ && filled < count; ++i) {
    QpRings* qp = qps_[i];
    if (qp == nullptr) continue;
    if (qp->send_cq == this) filled += FlushSends(*qp, count - filled, wc + filled);
    if (qp->receive_cq == this) filled += FlushReceives(*qp, count - filled, wc + filled);
  }
  return filled;
}

}  // namespace rocegw::client
