// SPDX-License-Identifier: Apache-2.0
// Decorator of a store that measures the time from call to answer. Any thread.
#pragma once

#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controlplane/store/store.h"

namespace rocegw::server {

class MeasuredStore final : public store::Store {
 public:
  explicit MeasuredStore(std::unique_ptr<store::Store> store);

  const std::string& uuid() const override { return store_->uuid(); }
  std::string_view backend() const override { return store_->backend(); }
  void TxnAsync(store::Transaction transaction, TxnDone done) override;
  void TxnHere(store::Transaction transaction, TxnDone done) override;
  void RangeAsync(store::RangeRequest request, RangeDone done) override;
  StatusOr<std::unique_ptr<store::Watch>> NewWatch(store::KeyRange range, store::Revision from,
                                                   std::function<void()> ready) override {
    return store_->NewWatch(std::move(range), from, std::move(ready));
  }
  Status Compact(store::Revision revision) override { return store_->Compact(revision); }
  StatusOr<std::unique_ptr<store::Lease>> NewLease(std::chrono::seconds time_to_live,
                                                   std::function<void()> lost) override {
    return store_->NewLease(time_to_live, std::move(lost));
  }

  // Latencies and failures by operation.
  std::vector<prometheus::MetricFamily> Collect() const;

 private:
  struct Meter {
    Meter();
    void Add(std::chrono::steady_clock::time_point begin, bool ok);
    prometheus::Histogram seconds;
    std::atomic<uint64_t> failed{0};
  };
  // Returns a `done` that also records the transaction's time.
  TxnDone Measuring(const store::Transaction& transaction, TxnDone done);
  // Shared with answers that arrive during destruction.
  const std::shared_ptr<Meter> transactions_ = std::make_shared<Meter>();
  const std::shared_ptr<Meter> reads_ = std::make_shared<Meter>();
  const std::unique_ptr<store::Store> store_;
};

}  // namespace rocegw::server
