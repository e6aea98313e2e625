// SPDX-License-Identifier: Apache-2.0
#include "controlplane/server/metrics/measured_store.h"

#include "gateway/process/http/metric_families.h"

namespace rocegw::server {
namespace {

using Clock = std::chrono::steady_clock;

// 50 us, doubling, to 6.5 s.
prometheus::Histogram::BucketBoundaries Buckets() {
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bound = 50e-6; bounds.size() < 18; bound *= 2) bounds.push_back(bound);
  return bounds;
}

}  // namespace

MeasuredStore::Meter::Meter() : seconds(Buckets()) {}

void MeasuredStore::Meter::Add(Clock::time_point begin, bool ok) {
  seconds.Observe(std::chrono::duration<double>(Clock::now() - begin).count());
  if (!ok) failed.fetch_add(1, std::memory_order_relaxed);
}

MeasuredStore::MeasuredStore(std::unique_ptr<store::Store> store) : store_(std::move(store)) {}

store::Store::TxnDone MeasuredStore::Measuring(const store::Transaction& transaction,
                                               TxnDone done) {
  return [meter = transaction.OnlyReads() ? reads_ : transactions_, begin = Clock::now(),
          done = std::move(done)](StatusOr<store::TransactionResult> result) {
    meter->Add(begin, result.ok());
    done(std::move(result));
  };
}

void MeasuredStore::TxnAsync(store::Transaction transaction, TxnDone done) {
  TxnDone measuring = Measuring(transaction, std::move(done));
  store_->TxnAsync(std::move(transaction), std::move(measuring));
}

void MeasuredStore::TxnHere(store::Transaction transaction, TxnDone done) {
  TxnDone measuring = Measuring(transaction, std::move(done));
  store_->TxnHere(std::move(transaction), std::move(measuring));
}

void MeasuredStore::RangeAsync(store::RangeRequest request, RangeDone done) {
  store_->RangeAsync(std::move(request),
                     [meter = reads_, begin = Clock::now(),
                      done = std::move(done)](StatusOr<store::RangeResult> result) {
                       meter->Add(begin, result.ok());
                       done(std::move(result));
                     });
}

std::vector<prometheus::MetricFamily> MeasuredStore::Collect() const {
  using prometheus::ClientMetric;
  using prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families;
  const std::pair<const char*, const Meter&> meters[] = {{"read", *reads_},
                                                         {"transaction", *transactions_}};
  auto& latency =
      process::AddFamily(families, "rocegw_store_operation_seconds",
                         "time of the store's operations, to the answer", MetricType::Histogram);
  for (const auto& [operation, meter] : meters) {
    ClientMetric metric = meter.seconds.Collect();
    metric.label = {{"operation", operation}};
    latency.metric.push_back(std::move(metric));
  }
  auto& failures = process::AddFamily(families, "rocegw_store_failures_total",
                                      "operations of the store that failed", MetricType::Counter);
  for (const auto& [operation, meter] : meters) {
    process::AddValue(failures, {{"operation", operation}},
                      static_cast<double>(meter.failed.load(std::memory_order_relaxed)));
  }
  return families;
}

}  // namespace rocegw::server
