// SPDX-License-Identifier: Apache-2.0
// Store that forwards all calls to another store, which must outlive it. Tests override single
// calls.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "controlplane/store/store.h"

namespace rocegw::testing {

class ForwardingStore : public store::Store {
 public:
  explicit ForwardingStore(store::Store& to) : to_(to) {}
  const std::string& uuid() const override { return to_.uuid(); }
  std::string_view backend() const override { return to_.backend(); }
  void TxnAsync(store::Transaction transaction, TxnDone done) override {
    to_.TxnAsync(std::move(transaction), std::move(done));
  }
  void TxnHere(store::Transaction transaction, TxnDone done) override {
    to_.TxnHere(std::move(transaction), std::move(done));
  }
  void RangeAsync(store::RangeRequest request, RangeDone done) override {
    to_.RangeAsync(std::move(request), std::move(done));
  }
  StatusOr<std::unique_ptr<store::Watch>> NewWatch(store::KeyRange range, store::Revision from,
                                                   std::function<void()> ready) override {
    return to_.NewWatch(std::move(range), from, std::move(ready));
  }
  Status Compact(store::Revision revision) override { return to_.Compact(revision); }
  StatusOr<std::unique_ptr<store::Lease>> NewLease(std::chrono::seconds time_to_live,
                                                   std::function<void()> lost) override {
    return to_.NewLease(time_to_live, std::move(lost));
  }

 private:
  store::Store& to_;
};

}  // namespace rocegw::testing
