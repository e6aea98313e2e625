// SPDX-License-Identifier: Apache-2.0
// The contract of controlplane/store/store.h as tests that every backend passes. A program links
// the conformance_*.cc files and instantiates StoreConformance with its backends; each test gets a
// store of its own that is empty, though its revisions may have begun before it (etcd shares them).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/store/store.h"

namespace rocegw::testing {

// A store and what it lives in.
class StoreHost {
 public:
  virtual ~StoreHost() = default;
  virtual store::Store& store() = 0;
};

struct StoreBackend {
  std::string name;
  std::function<std::unique_ptr<StoreHost>()> make;
};

class StoreConformance : public ::testing::TestWithParam<StoreBackend> {
 protected:
  using Revision = store::Revision;

  store::Store& store() { return host_->store(); }

  // One write, which must work; its revision.
  Revision Put(std::string_view key, std::string_view value, store::LeaseId lease = 0);
  Revision Delete(std::string_view key);
  store::TransactionResult Must(store::Transaction transaction);
  // The newest, nullopt when it is absent.
  std::optional<store::Entry> Get(std::string_view key);
  store::RangeResult List(std::string_view prefix, Revision at = 0, size_t limit = 0);
  Revision Newest() { return List("").revision; }
  // Waits, a while, for the next transaction of a watch; fails the test when none comes.
  store::Changes Next(store::BlockingWatch& watch);
  // "put key=value" and "del key" of a transaction, in order of the keys.
  static std::vector<std::string> Text(const store::Changes& changes);

 private:
  std::unique_ptr<StoreHost> host_ = GetParam().make();
};

inline std::string BackendName(const ::testing::TestParamInfo<StoreBackend>& info) {
  return info.param.name;
}

}  // namespace rocegw::testing
