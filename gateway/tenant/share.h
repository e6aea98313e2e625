// SPDX-License-Identifier: Apache-2.0
// What workers look at of the gateway, a tenant or a pool while they divide their time and the
// link, what they take for it, and what they count for it. Owner: the registry; the control thread
// sets, workers read, charge and count. Outlives the sessions of its pool.
#pragma once

#include <atomic>
#include <cstdint>

#include "gateway/metrics/duration_histogram.h"
#include "gateway/tenant/amounts.h"
#include "gateway/tenant/rate_node.h"

namespace rocegw::tenant {

class QuotaNode;

class Share {
 public:
  // The gateway's has no parent; a tenant's parent is the gateway's, a pool's its tenant's.
  explicit Share(Share* parent)
      : connects(parent == nullptr ? nullptr : &parent->connects),
        bytes(parent == nullptr ? nullptr : &parent->bytes, kDataBurst),
        packets(parent == nullptr ? nullptr : &parent->packets, kDataBurst),
        parent_(parent) {}

  void SetRates(const Quota& quota) {
    Set(connects, quota, Rate::kConnects);
    Set(bytes, quota, Rate::kBytes);
    Set(packets, quota, Rate::kPackets);
  }
  void SetWeight(uint32_t weight) { weight_.store(weight, std::memory_order_relaxed); }

  uint32_t weight() const { return weight_.load(std::memory_order_relaxed); }
  Share* parent() const { return parent_; }

  RateNode connects;
  RateNode bytes;
  RateNode packets;

  // Of pools: where its workers take channels; nullptr: nobody counts. Set once, at the beginning.
  QuotaNode* channel_quota = nullptr;

  // Of pools; all workers together.
  std::atomic<uint64_t> sent_bytes{0};  // headers included
  std::atomic<uint64_t> sent_packets{0};
  // Requests of connected queue pairs and endpoints that completed well, from when the worker took
  // them; a tenth of a second late while it is busy.
  metrics::SharedDurationHistogram operations;
  // Times that something to send had to wait for a rate.
  std::atomic<uint64_t> held_back_by_bytes{0};
  std::atomic<uint64_t> held_back_by_packets{0};
  std::atomic<uint64_t> channels_refused{0};

 private:
  // A worker that sleeps oversleeps by a millisecond or two; what it missed may follow at once.
  static constexpr Duration kDataBurst = Milliseconds(10);

  static void Set(RateNode& node, const Quota& quota, Rate rate) {
    node.SetRates(quota.committed[rate], quota.peak[rate]);
  }

  Share* const parent_;
  std::atomic<uint32_t> weight_{1};
};

}  // namespace rocegw::tenant
