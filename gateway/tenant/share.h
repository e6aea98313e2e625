// SPDX-License-Identifier: Apache-2.0
// Worker-visible part of the gateway, a tenant or a pool: its shares of time and link, what workers
// take and count for it. Owned by the registry. The control thread sets values; workers read,
// charge and count. Outlives the sessions of its pool.
#pragma once

#include <atomic>
#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/metrics/duration_histogram.h"
#include "gateway/tenant/amounts.h"
#include "gateway/tenant/rate_node.h"

namespace rocegw::tenant {

class QuotaNode;

class Share {
 public:
  // Burst of data that makes up for the oversleep of a worker, a millisecond or two.
  static constexpr Duration kDataBurst = Milliseconds(10);

  // The gateway's share has no parent; a tenant's parent is the gateway's, a pool's is its
  // tenant's.
  explicit Share(Share* parent)
      : connects(parent == nullptr ? nullptr : &parent->connects),
        requests(parent == nullptr ? nullptr : &parent->requests),
        bytes(parent == nullptr ? nullptr : &parent->bytes, kDataBurst),
        packets(parent == nullptr ? nullptr : &parent->packets, kDataBurst),
        parent_(parent) {}

  void SetRates(const Quota& limits) {
    Set(connects, limits, Rate::kConnects);
    Set(requests, limits, Rate::kConnects);
    Set(bytes, limits, Rate::kBytes);
    Set(packets, limits, Rate::kPackets);
  }
  void SetWeight(uint32_t weight) { weight_.store(weight, std::memory_order_relaxed); }

  uint32_t weight() const { return weight_.load(std::memory_order_relaxed); }
  Share* parent() const { return parent_; }
  // Differs from the tags of all other shares of this process.
  PoolTag tag() const { return tag_; }

  RateNode connects;
  // Requests of peers, which have the same rate for themselves: peers must not use up that of the
  // programs' own connections.
  RateNode requests;
  RateNode bytes;
  RateNode packets;

  // Pools only: node from which workers take channels and heap; nullptr: those are not counted. Set
  // once, at creation.
  QuotaNode* quota = nullptr;

  // Pools only; sum over all workers.
  std::atomic<uint64_t> sent_bytes{0};  // headers included
  std::atomic<uint64_t> sent_packets{0};
  // Successful requests of connected queue pairs and endpoints, from the time the worker took them;
  // updated with a delay of up to 0.1 s while the worker is busy.
  metrics::SharedDurationHistogram operations;
  // Number of times that packets had to wait for a rate.
  std::atomic<uint64_t> held_back_by_bytes{0};
  std::atomic<uint64_t> held_back_by_packets{0};
  std::atomic<uint64_t> channels_refused{0};

 private:
  static void Set(RateNode& node, const Quota& limits, Rate rate) {
    node.SetRates(limits.committed[rate], limits.peak[rate]);
  }

  static PoolTag NewTag() {
    static std::atomic<uint32_t> last{0};
    return {last.fetch_add(1, std::memory_order_relaxed) + 1};
  }

  Share* const parent_;
  const PoolTag tag_ = NewTag();
  std::atomic<uint32_t> weight_{1};
};

}  // namespace rocegw::tenant
