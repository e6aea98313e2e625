// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/noise/lab.h"

#include <algorithm>
#include <cstdlib>

#include "gateway/worker/schedule/cycle_clock.h"
#include "tests/bench/measurement.h"

namespace rocegw::testing {
namespace {

constexpr int kPeerTurns = 64;

}  // namespace

Lab::Lab(double slowdown, bool channels) : slowdown_(slowdown) {
  GatewayPairOptions options;
  options.channels = channels;
  options.reach = Reach::kDirect;
  options.memory_bytes = 16 << 20;
  options.congestion.window_bytes = 256 << 10;
  options.shares[kHere] = {&pools_[0], &pools_[1]};
  options.shares[kPeer] = {nullptr, nullptr};
  options.clock = worker::FindCycleClock();
  options.processor_time = &worker::ThreadProcessorTime;
  gateways_ = std::make_unique<GatewayPair>(options);
  start_ = gateways_->now();
}

Pair Lab::Connect(uint32_t session, uint32_t sq_entries, uint8_t min_rnr_timer) {
  RingOptions ring;
  ring.session = session;
  ring.tenant_tag = session;
  ring.sq_entries = sq_entries;
  ring.rq_entries = 1;
  ring.cq_entries = std::max(2 * sq_entries, 16u);
  ring.max_sge = 1;
  ring.handle = next_[session]++;
  // The bucket that both steering tables give to their only worker.
  ring.qpn = next_qpn_++;
  Pair pair;
  pair.here = &gateways_->AddQp(kHere, ring);
  pair.peer = &gateways_->AddQp(kPeer, ring);
  gateways_->Connect(*pair.here, *pair.peer, 5, min_rnr_timer);
  return pair;
}

void Lab::Iterate() {
  const TimePoint now = start_ + Nanoseconds(time());
  const double begin = bench::ThreadCpuSeconds();
  gateways_->RunWorker(kHere, 0, now);
  const double taken = bench::ThreadCpuSeconds() - begin - bench::ThreadCpuClockCost();
  time_ += std::max(taken, 1e-8) * 1e9 * slowdown_;
  const TimePoint after = start_ + Nanoseconds(time());
  for (int i = 0; i < kPeerTurns && gateways_->RunWorker(kPeer, 0, after); ++i) {
  }
  gateways_->TakeNotices();
  gateways_->notices.clear();
}

rocegw_send_wqe Lab::Request(uint64_t wr_id, uint8_t opcode) {
  rocegw_send_wqe wqe{};
  wqe.wr_id = wr_id;
  wqe.opcode = opcode;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  return wqe;
}

bool Lab::Post(int side, RingEnd& end, const rocegw_send_wqe& wqe, uint32_t length,
               uint64_t offset) {
  const uint32_t session = end.options().session;
  rocegw_send_wqe filled = wqe;
  if (filled.u.rdma.rkey == 0) {
    filled.u.rdma.rkey = GatewayPair::KeyOf(1 - side, session).value;
    filled.u.rdma.remote_address = gateways_->Base(1 - side) + offset;
  }
  const rocegw_sge sge{gateways_->Base(side) + offset, length,
                       GatewayPair::KeyOf(side, session).value};
  return end.PostSend(filled, {sge});
}

Victim::Victim(Lab& lab) : lab_(lab), queues_(kQueues) {
  for (Queue& queue : queues_) queue.pair = lab.Connect(kVictimSession, kDepth);
}

void Victim::Turn() {
  for (Queue& queue : queues_) {
    for (const rocegw_cqe& cqe : queue.pair.here->Poll()) {
      if (cqe.status != 0) std::abort();
      latencies_.push_back(lab_.time() - queue.posted_at[cqe.wr_id % kDepth]);
      ++queue.done;
      ++completed_;
    }
    bool posted = false;
    while (queue.posted - queue.done < kDepth) {
      queue.posted_at[queue.posted % kDepth] = lab_.time();
      const auto number = static_cast<uint64_t>(&queue - queues_.data());
      const uint64_t buffer = number * kDepth + queue.posted % kDepth;
      if (!lab_.Post(kHere, *queue.pair.here, Lab::Request(queue.posted, ROCEGW_WR_RDMA_WRITE),
                     kBytes, buffer * kBytes)) {
        break;
      }
      ++queue.posted;
      posted = true;
    }
    if (posted) lab_.gateways().Ring(kHere, *queue.pair.here);
  }
}

void Victim::Forget() {
  latencies_.clear();
  completed_ = 0;
}

double Victim::LatencyAt(double quantile) {
  if (latencies_.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(quantile * static_cast<double>(latencies_.size()));
  std::nth_element(latencies_.begin(), latencies_.begin() + at, latencies_.end());
  return static_cast<double>(latencies_[static_cast<size_t>(at)]);
}

}  // namespace rocegw::testing
