// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/api/large_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "controlplane/model/serialized.h"
#include "controlplane/model/stored.h"
#include "controlplane/model/timestamp.h"
#include "controlplane/store/random_uuid.h"
#include "controlplane/store/sqlite/sqlite_store.h"
#include "rocegw/types/v1/gateway.pb.h"
#include "rocegw/types/v1/pool.pb.h"
#include "rocegw/types/v1/tenant.pb.h"
#include "tests/support/fleet/controller_program.h"

namespace rocegw::bench {
namespace {

constexpr int kGatewaysPerPool = 20;
constexpr size_t kPerTransaction = 100;

// Gathers objects into transactions.
class Filler {
 public:
  explicit Filler(store::Store& store) : store_(store) {}

  template <typename Object>
  void Put(Object object) {
    object.mutable_meta()->set_uid(store::RandomUuid());
    object.mutable_meta()->set_generation(1);
    *object.mutable_meta()->mutable_create_time() = model::Now();
    transaction_.then.push_back(
        store::Operation::Put(model::KeyOf(model::Part::kIntent, model::NameOf(object.name())),
                              model::Serialized(object)));
    if (transaction_.then.size() == kPerTransaction) Flush();
  }
  void Flush() {
    if (transaction_.then.empty()) return;
    const auto written = store_.Txn(std::exchange(transaction_, {}));
    if (!written.ok()) failed_ = written.status();
  }
  const Status& failed() const { return failed_; }

 private:
  store::Store& store_;
  store::Transaction transaction_;
  Status failed_;
};

}  // namespace

std::string FillAndDie(const std::string& path) {
  auto store = store::OpenSqliteStore({.path = path, .vfs = {}, .checkpoint_pages = 0});
  if (!store.ok()) return store.status().text();
  Filler filler(**store);
  for (int i = 0; i < kTenants; ++i) {
    types::v1::Tenant tenant;
    tenant.set_name("tenants/t" + std::to_string(i));
    filler.Put(tenant);
  }
  // The first one has joined and exists.
  for (int i = 1; i < kGateways; ++i) {
    types::v1::Gateway gateway;
    gateway.set_name("gateways/g" + std::to_string(i));
    filler.Put(gateway);
  }
  for (int i = 0; i < kPools; ++i) {
    types::v1::Pool pool;
    pool.set_name("tenants/t" + std::to_string(i % kTenants) + "/pools/p" + std::to_string(i));
    for (int k = 0; k < kGatewaysPerPool; ++k) {
      const int at = (i * 7 + k * (kGateways / kGatewaysPerPool)) % kGateways;
      pool.mutable_spec()->mutable_gateways()->add_names("gateways/g" + std::to_string(at));
    }
    pool.mutable_spec()->mutable_quota()->mutable_peak()->set_qps(100);
    filler.Put(pool);
  }
  filler.Flush();
  if (!filler.failed().ok()) return filler.failed().text();
  ::kill(::getpid(), SIGKILL);
  return "not killed";
}

double MakeLargeStore(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/proc/self/exe", "bench_api", "--fill", path.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
    testing::GiveUp("cannot make the store with many objects");
  return static_cast<double>(std::filesystem::file_size(path + "-wal")) / (1 << 20);
}

}  // namespace rocegw::bench
