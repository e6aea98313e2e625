// SPDX-License-Identifier: Apache-2.0
// Captures of a gateway with two tenants: captured packets as queue pairs come and go, the number
// of captures at a time, and workers that record only during captures.
#include "gateway/session/state/captures.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>

#include "gateway/port/pair_port.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

constexpr char kRed[] = "tenants/red/pools/a";
constexpr char kBlue[] = "tenants/blue/pools/a";

class NoFile final : public port::CaptureSink {
 public:
  Status Write(std::span<const uint8_t>) override { return OkStatus(); }
  void End(const port::CaptureSummary&) override {}
  void Abort() override {}
};

class CapturesTest : public ::testing::Test {
 protected:
  CapturesTest() {
    for (const char* tenant : {"tenants/red", "tenants/blue"}) {
      tenant::TenantSettings settings;
      settings.name = tenant;
      host.server->SetTenant(settings);
    }
    SetPool(kRed, {});
    SetPool(kBlue, {});
    std::vector<session::CaptureQueues> queues;
    for (size_t worker = 0; worker < host.workers.size(); ++worker)
      queues.push_back({{&link_.port(0)}, {&recording_}});
    captures().SetQueues(taps_, std::move(queues));
  }
  ~CapturesTest() override {
    captures().StopAll();
    host.Settle();
  }
  void SetPool(const std::string& name, std::vector<wire::Gid> addresses) {
    tenant::PoolSettings settings;
    settings.name = name;
    settings.trusted = true;
    settings.addresses = std::move(addresses);
    host.server->SetPool(settings, {});
  }
  session::Captures& captures() { return host.server->captures(); }
  // Returns 0 or the errno.
  int Start(const std::string& pool, std::shared_ptr<port::CaptureSink> sink) {
    std::optional<int> error;
    captures().Start({.pool = pool, .qpn = {}, .peer = {}, .bounds = {}}, std::move(sink),
                     [&](const Status& status) { error = status.error(); });
    host.Settle();
    return error.value_or(-1);
  }
  int Start(const std::string& pool) { return Start(pool, std::make_shared<NoFile>()); }
  Qpn MakeQp(TestClient& client) {
    const uint32_t context = client.OpenContext();
    const uint32_t pd = client.AllocPd(context);
    const uint32_t cq = client.CreateCq(context).handle;
    const auto reply = client.CreateQp(pd, cq);
    EXPECT_EQ(client.error(), 0);
    return Qpn{reply.qpn};
  }
  bool Wants(size_t tap, Qpn qpn, const wire::Gid& here = {}) {
    return taps_[tap].filter().Wants({.qpn = qpn, .here = here, .there = {}});
  }
  bool Recording() const {
    for (const auto& worker : host.workers) {
      if (worker->ports.size() != 1 || worker->ports[0] != &recording_) return false;
    }
    return true;
  }

  SessionHost host;
  port::PairLink link_{{}};
  port::CaptureTaps taps_;
  port::CapturePort recording_{link_.port(0), taps_};
};

TEST_F(CapturesTest, OfATenant_TakesItsQueuePairsWhateverTheirTime_AndNoOthers) {
  auto red_client = std::make_unique<TestClient>(host, kRed);
  TestClient& red = *red_client;
  red.Hello();
  TestClient blue(host, kBlue);
  blue.Hello();
  const Qpn red_before = MakeQp(red);
  const Qpn blue_before = MakeQp(blue);
  ASSERT_EQ(Start("tenants/red/pools/-"), 0);
  ASSERT_EQ(Start(kBlue), 0);
  const Qpn red_later = MakeQp(red);
  const Qpn blue_later = MakeQp(blue);
  // The first tap is reserved for captures without a tenant.
  for (const Qpn qpn : {red_before, red_later}) {
    EXPECT_TRUE(Wants(1, qpn));
    EXPECT_FALSE(Wants(2, qpn));
  }
  for (const Qpn qpn : {blue_before, blue_later}) {
    EXPECT_FALSE(Wants(1, qpn));
    EXPECT_TRUE(Wants(2, qpn));
  }
  EXPECT_FALSE(Wants(1, kGsiQpn)) << "connection management is of all";
  red_client.reset();
  host.Settle();
  EXPECT_FALSE(Wants(1, red_before)) << "the number may be another tenant's next";
  EXPECT_FALSE(Wants(1, red_later));
}

TEST_F(CapturesTest, OfATenant_TakesItsOwnAddressesAsTheyAreNow) {
  const wire::Gid own = wire::Gid::FromV4(0x0A000001);
  const wire::Gid other = wire::Gid::FromV4(0x0A000002);
  SetPool(kRed, {own});
  ASSERT_EQ(Start(kRed), 0);
  EXPECT_TRUE(Wants(1, kGsiQpn, own));
  EXPECT_FALSE(Wants(1, kGsiQpn, other));
  SetPool(kRed, {other});
  EXPECT_FALSE(Wants(1, kGsiQpn, own)) << "it may belong to somebody else by now";
  EXPECT_TRUE(Wants(1, kGsiQpn, other));
}

TEST_F(CapturesTest, OneForEachTenant_AndAPlaceForTheOperator) {
  for (const char* tenant : {"tenants/c", "tenants/d"}) {
    tenant::TenantSettings settings;
    settings.name = tenant;
    host.server->SetTenant(settings);
    SetPool(std::string(tenant) + "/pools/a", {});
  }
  EXPECT_EQ(Start("tenants/none/pools/-"), ENOENT);
  EXPECT_EQ(Start(kRed), 0);
  EXPECT_EQ(Start("tenants/red/pools/-"), EBUSY);
  EXPECT_EQ(Start(kBlue), 0);
  EXPECT_EQ(Start("tenants/c/pools/a"), 0);
  EXPECT_EQ(Start("tenants/d/pools/a"), EBUSY);
  EXPECT_EQ(Start(""), 0);
  EXPECT_EQ(Start(""), EBUSY);
}

TEST_F(CapturesTest, WorkersRecordWhileOneRuns_AndWhoGoesFreesItsPlace) {
  EXPECT_FALSE(Recording());
  const auto sink = std::make_shared<NoFile>();
  ASSERT_EQ(Start(kRed, sink), 0);
  EXPECT_TRUE(Recording());
  ASSERT_EQ(Start(""), 0);
  captures().Abort(sink);
  host.Settle();
  EXPECT_TRUE(Recording()) << "one still runs";
  EXPECT_EQ(Start(kRed, sink), 0) << "its place is free";
  captures().StopAll();
  host.Settle();
  EXPECT_FALSE(Recording());
}

}  // namespace
}  // namespace rocegw::testing
