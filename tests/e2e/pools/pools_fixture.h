// SPDX-License-Identifier: Apache-2.0
// A real daemon with some pools in a namespace of its own, what programs of the pools print, and
// what the daemon tells of them. Needs root.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rocegw/gateway/v1/config.grpc.pb.h"
#include "rocegw/gateway/v1/identity.grpc.pb.h"
#include "rocegw/gateway/v1/state.grpc.pb.h"
#include "tests/e2e/daemon/daemon_process.h"
#include "tests/support/network/network_namespace.h"

namespace rocegw::testing {

namespace fs = std::filesystem;

inline constexpr char kPoolsConfig[] = R"(name: host-a
workers: 1
memory_placement: by_pool
ports: [{interface: veth0}]
metrics: {address: ''}
static:
  tenants:
    - name: tenants/red
    - name: tenants/blue
  pools:
    - name: tenants/red/pools/small
      uid: aaaaaaaa-0000-4000-8000-000000000000
      spec:
        slots: 1
        quota:
          peak: {sessions: 2, pds: 3, cqs: 4, qps: 5, srqs: 2, mrs: 6, ahs: 3, cm_ids: 7, listeners: 2,
                 registered_bytes: 32768, segment_bytes: 16777216, connects_per_second: 3, channels: 1}
        memory: {trusted: true}
    - name: tenants/red/pools/picky
      uid: cccccccc-0000-4000-8000-000000000000
      spec:
        slots: 1
        addresses: [10.9.0.2]
        allowed_peers: [10.9.0.0/29]
    - name: tenants/blue/pools/asked
      uid: dddddddd-0000-4000-8000-000000000000
      spec:
        slots: 1
        attach: {identity: REQUIRED}
        memory: {trusted: true}
    - name: tenants/blue/pools/fast
      uid: eeeeeeee-0000-4000-8000-000000000000
      spec:
        slots: 1
        ready_qps: 8
        memory: {trusted: true}
    - name: tenants/blue/pools/big
      uid: bbbbbbbb-0000-4000-8000-000000000000
      spec:
        slots: 1
        quota:
          peak: {pds: 50, cqs: 50, qps: 50, srqs: 50, mrs: 50, cm_ids: 50, listeners: 50, sessions: 50,
                 registered_bytes: 409600, segment_bytes: 268435456, connects_per_second: 50}
        memory: {trusted: true, placement: ENABLED}
)";

class PoolsE2e : public ::testing::Test {
 protected:
  void SetUp() override {
    auto space = NetworkNamespace::Create();
    ASSERT_TRUE(space.ok()) << space.status().text();
    space_.emplace(std::move(*space));
    const Status made = space_->Run(
        "ip link add veth0 type veth peer name veth1 && ip link set veth0 up && "
        "ip link set veth1 up && ip address add 10.9.0.1/24 dev veth0 && "
        "ip address add 10.9.0.2/24 dev veth0 && "
        "ip neighbour add 10.9.0.9 lladdr 02:00:00:00:00:09 dev veth0 nud permanent");
    ASSERT_TRUE(made.ok()) << made.text();
    char pattern[] = "/tmp/rocegw-pools-XXXXXX";
    directory_ = mkdtemp(pattern);
    std::ofstream(File("config.yaml")) << "runtime_dir: " << File("run") << "\n" << kPoolsConfig;
    Start();
  }
  void TearDown() override {
    daemon_.reset();
    fs::remove_all(directory_);
  }
  void Start() {
    daemon_.reset();
    daemon_.emplace(*space_, ROCEGWD, directory_,
                    std::vector<std::string>{"--config", File("config.yaml")});
    ASSERT_TRUE(daemon_->WaitReady()) << daemon_->Log();
    const auto channel =
        grpc::CreateChannel("unix:" + File("run/grpc.sock"), grpc::InsecureChannelCredentials());
    state_ = gateway::v1::StateService::NewStub(channel);
    config_ = gateway::v1::ConfigService::NewStub(channel);
    identity_ = gateway::v1::IdentityService::NewStub(channel);
  }
  std::string File(const std::string& name) const { return directory_ + "/" + name; }
  std::string Socket(const std::string& pool) const {
    const char* const folder = pool == "red"     ? "aaaaaaaa"
                               : pool == "blue"  ? "bbbbbbbb"
                               : pool == "asked" ? "dddddddd"
                               : pool == "fast"  ? "eeeeeeee"
                                                 : "cccccccc";
    return File(std::string("run/a/") + folder + "/0/attach.sock");
  }
  std::string Command(const std::string& pool, const std::string& arguments,
                      const std::string& program = QUOTA_PROBE) const {
    return std::string(ROCEGW_RUN) + " --socket " + Socket(pool) + " -- " + program + " " +
           arguments + " 2>&1";
  }
  // What the probe prints when it runs in the pool.
  std::string Probe(const std::string& pool, const std::string& arguments) const {
    const NetworkNamespace::Inside inside(*space_);
    FILE* const program = popen(Command(pool, arguments).c_str(), "re");
    char text[512] = "";
    std::string all;
    while (std::fgets(text, sizeof text, program) != nullptr) all += text;
    pclose(program);
    if (all.ends_with('\n')) all.pop_back();
    return all;
  }
  static std::unique_ptr<grpc::ClientContext> Soon() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return context;
  }
  // The message of the latest event about a pool; "" when there is none.
  std::string EventOf(const std::string& pool, const std::string& limit) const {
    gateway::v1::ListEventsResponse events;
    EXPECT_TRUE(state_->ListEvents(Soon().get(), {}, &events).ok());
    for (const auto& event : events.events()) {
      if (event.object() == pool && event.reason() == "QUOTA_EXCEEDED" &&
          event.message().find(" " + limit + " ") != std::string::npos)
        return event.message();
    }
    return "";
  }
  types::v1::PoolUsage UsageOf(const std::string& pool) const {
    gateway::v1::ListPoolsResponse pools;
    EXPECT_TRUE(state_->ListPools(Soon().get(), {}, &pools).ok());
    for (const auto& known : pools.pools()) {
      if (known.pool() == pool) return known;
    }
    ADD_FAILURE() << "no pool " << pool;
    return {};
  }
  types::v1::LimitUsage LimitOf(const std::string& pool, const std::string& limit) const {
    const types::v1::PoolUsage known = UsageOf(pool);
    for (const auto& usage : known.limits()) {
      if (usage.limit() == limit) return usage;
    }
    ADD_FAILURE() << "no limit " << limit << " of " << pool;
    return {};
  }
  uint64_t Refused(const std::string& pool, const std::string& limit) const {
    return LimitOf(pool, limit).refused();
  }
  // A whole configuration with one tenant and its one pool, whose spec is the caller's to fill.
  static types::v1::PoolSpec& PushOnePool(const std::string& tenant, const std::string& pool,
                                          const std::string& uid, types::v1::Push& push) {
    push.set_store_uuid("11111111-1111-4111-8111-111111111111");
    push.set_revision(5);
    push.set_full(true);
    auto* object = push.add_objects();
    object->set_name("gateways/host-a");
    object->mutable_gateway()->set_name("gateways/host-a");
    object = push.add_objects();
    object->set_name(tenant);
    object->mutable_tenant()->set_name(tenant);
    object = push.add_objects();
    object->set_name(tenant + "/pools/" + pool);
    object->mutable_pool()->set_name(object->name());
    object->mutable_pool()->set_uid(uid);
    return *object->mutable_pool()->mutable_spec();
  }

  std::optional<NetworkNamespace> space_;
  std::string directory_;
  std::optional<DaemonProcess> daemon_;
  std::unique_ptr<gateway::v1::StateService::Stub> state_;
  std::unique_ptr<gateway::v1::ConfigService::Stub> config_;
  std::unique_ptr<gateway::v1::IdentityService::Stub> identity_;
};

}  // namespace rocegw::testing
