// SPDX-License-Identifier: Apache-2.0
// The store in a real etcd keeps the contract, with one member and with three.
#include "controlplane/store/etcd/etcd_store.h"

#include "tests/e2e/store/etcd_cluster.h"
#include "tests/support/store/conformance.h"

namespace rocegw::testing {
namespace {

// One cluster for all tests of a kind; each has its own root in it.
EtcdCluster& SharedCluster(size_t members) {
  static EtcdCluster one(1);
  if (members == 1) return one;
  static EtcdCluster three(3);
  return three;
}

class EtcdHost : public StoreHost {
 public:
  explicit EtcdHost(size_t members) {
    static int roots = 0;
    auto opened = store::OpenEtcdStore(
        SharedCluster(members).Options("/test" + std::to_string(++roots) + "/"));
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    store_ = std::move(*opened);
  }
  store::Store& store() override { return *store_; }

 private:
  std::unique_ptr<store::Store> store_;
};

StoreBackend Members(size_t count) {
  return {"members" + std::to_string(count), [count] { return std::make_unique<EtcdHost>(count); }};
}

INSTANTIATE_TEST_SUITE_P(Etcd, StoreConformance, ::testing::Values(Members(1), Members(3)),
                         BackendName);

TEST(EtcdStore, OpenedAgain_IsTheSameStore) {
  EtcdCluster& cluster = SharedCluster(1);
  auto first = store::OpenEtcdStore(cluster.Options("/again/"));
  ASSERT_TRUE(first.ok()) << first.status().text();
  auto second = store::OpenEtcdStore(cluster.Options("/again/"));
  ASSERT_TRUE(second.ok());
  auto other = store::OpenEtcdStore(cluster.Options("/other/"));
  ASSERT_TRUE(other.ok());
  EXPECT_EQ((*first)->uuid(), (*second)->uuid());
  EXPECT_NE((*first)->uuid(), (*other)->uuid());

  ASSERT_TRUE((*first)->Txn({{}, {store::Operation::Put("a", "1")}, {}}).ok());
  EXPECT_EQ((*second)->Get("a")->value().value, "1");
  EXPECT_FALSE((*other)->Get("a")->has_value()) << "roots do not see each other";
  // Its identity is no key of the store.
  EXPECT_EQ((*first)->Range({store::KeyRange::All()})->entries.size(), 1u);
}

TEST(EtcdStore, NobodyThere_IsSaidInTime) {
  store::EtcdOptions options;
  options.endpoints = {"127.0.0.1:1"};
  options.timeout = std::chrono::milliseconds(500);
  const auto store = store::OpenEtcdStore(options);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.status().error(), store::kUnavailable);
  EXPECT_NE(store.status().text().find("127.0.0.1:1"), std::string::npos) << store.status().text();
}

TEST(EtcdStore, NoEndpoints_IsRefused) {
  EXPECT_EQ(store::OpenEtcdStore({}).status().error(), store::kInvalid);
}

}  // namespace
}  // namespace rocegw::testing
