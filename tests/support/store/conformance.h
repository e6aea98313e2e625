// SPDX-License-Identifier: Apache-2.0
// Contract of controlplane/store/store.h as tests that each backend must pass. A program links the
// conformance_*.cc files and instantiates StoreConformance with its backends. Each test gets an
// empty store; its first revision may be larger than 1, because tests of etcd share one server.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controlplane/store/store.h"

namespace rocegw::testing {

// Store and its environment.
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

  // Makes one write, which must succeed, and returns its revision.
  Revision Put(std::string_view key, std::string_view value, store::LeaseId lease = 0);
  Revision Delete(std::string_view key);
  store::TransactionResult Must(store::Transaction transaction);
  // Returns the newest value; nullopt if the key is absent.
  std::optional<store::Entry> Get(std::string_view key);
  store::RangeResult List(std::string_view prefix, Revision at = 0, size_t limit = 0);
  Revision Newest() { return List("").revision; }
  // Waits for the next transaction of a watch. The time-out fails the test.
  store::Changes Next(store::BlockingWatch& watch);
  // Returns a transaction as "put key=value" and "del key", in order of the keys.
  static std::vector<std::string> Text(const store::Changes& changes);

 private:
  std::unique_ptr<StoreHost> host_ = GetParam().make();
};

inline std::string BackendName(const ::testing::TestParamInfo<StoreBackend>& info) {
  return info.param.name;
}

}  // namespace rocegw::testing
