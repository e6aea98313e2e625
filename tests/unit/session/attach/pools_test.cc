// SPDX-License-Identifier: Apache-2.0
// Two pools on one gateway: a refusal of one does not affect the other.
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using session::Resource;

constexpr char kRed[] = "tenants/red/pools/a";
constexpr char kBlue[] = "tenants/blue/pools/a";

class Pools : public ::testing::Test {
 protected:
  Pools() {
    for (const char* name : {"tenants/red", "tenants/blue"}) {
      tenant::TenantSettings settings;
      settings.name = name;
      registry().SetTenant(settings);
    }
    SetPool(kBlue, {});
  }
  tenant::Registry& registry() { return host.server->services().pools; }
  void SetPool(const std::string& name, const tenant::Quota& quota, bool trusted = true) {
    tenant::PoolSettings settings;
    settings.name = name;
    settings.quota = quota;
    settings.trusted = trusted;
    registry().SetPool(settings);
  }
  std::unique_ptr<TestClient> Join(const std::string& pool) {
    auto client = std::make_unique<TestClient>(host, pool);
    client->Hello();
    return client;
  }
  // Returns the text of the latest event and its count.
  std::pair<std::string, uint64_t> LastEvent() {
    const auto rows = host.server->services().events.Rows();
    return rows.empty() ? std::pair<std::string, uint64_t>()
                        : std::pair{rows[0].text, rows[0].count};
  }
  uint64_t Refused(const std::string& pool, Resource resource) {
    return registry().FindPool(pool)->refused(static_cast<size_t>(resource));
  }

  SessionHost host;
};

// Creates one of each object; returns the first error.
int UseAll(TestClient& client) {
  const uint32_t context = client.OpenContext();
  if (client.error() != 0) return client.error();
  const uint32_t pd = client.AllocPd(context);
  if (client.error() != 0) return client.error();
  client.RegMr(pd, 0x10000, 4096);
  if (client.error() != 0) return client.error();
  const uint32_t cq = client.CreateCq(context).handle;
  if (client.error() != 0) return client.error();
  client.CreateQp(pd, cq);
  if (client.error() != 0) return client.error();
  const uint32_t channel =
      client
          .Call<rocegw_object_reply>(
              TestClient::Request<rocegw_object_request>(ROCEGW_MSG_CM_CREATE_CHANNEL))
          .handle;
  auto create = TestClient::Request<rocegw_cm_create_id>(ROCEGW_MSG_CM_CREATE_ID);
  create.channel = channel;
  create.port_space = 0x0106;
  const uint32_t id = client.Call<rocegw_object_reply>(create).handle;
  if (client.error() != 0) return client.error();
  auto listen = TestClient::Request<rocegw_cm_listen>(ROCEGW_MSG_CM_LISTEN);
  listen.id = id;
  client.Call<rocegw_cm_id_reply>(listen);
  return client.error();
}

TEST_F(Pools, SendingHeldBack_EventNamesPoolAndRate) {
  tenant::Quota quota;
  quota.peak[tenant::Rate::kBytes] = 5'000'000;
  SetPool(kRed, quota);
  tenant::Pool& pool = *registry().FindPool(kRed);
  pool.share().held_back_by_bytes = 3;
  host.workers[1]->Raise(
      {0, worker::RateReached{&pool.share(), tenant::Rate::kBytes, &pool.share().bytes}});
  host.Settle();
  EXPECT_EQ(
      LastEvent().first,
      std::string(kRed) + ": limit of bytes_per_second reached, which is 5000000 for the pool");
  EXPECT_EQ(pool.refused(tenant::kResources + 1), 3u);
  // Nothing is reported about a removed pool.
  host.workers[0]->Raise({0, worker::RateReached{nullptr, tenant::Rate::kBytes, nullptr}});
  host.Settle();
  EXPECT_EQ(LastEvent().second, 1u);
}

class EachLimit : public Pools, public ::testing::WithParamInterface<Resource> {};

TEST_P(EachLimit, NothingLeft_EnomemEventAndCounterAndTheOtherPoolWorks) {
  const Resource resource = GetParam();
  tenant::Quota quota;
  quota.peak[resource] = 0;
  SetPool(kRed, quota);
  if (resource == Resource::kSessions) {
    TestClient red(host, kRed);
    const auto answer = red.Receive();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->header().error, ENOMEM);
  } else {
    EXPECT_EQ(UseAll(*Join(kRed)), ENOMEM);
  }
  const std::string limit(tenant::NameOf(resource));
  EXPECT_EQ(LastEvent().first,
            std::string(kRed) + ": limit of " + limit + " reached, which is 0 for the pool");
  EXPECT_TRUE(host.Logged(limit));
  EXPECT_GE(Refused(kRed, resource), 1u);
  auto blue = Join(kBlue);
  EXPECT_EQ(UseAll(*blue), 0);
  EXPECT_EQ(Refused(kBlue, resource), 0u);
}

INSTANTIATE_TEST_SUITE_P(Pools, EachLimit,
                         ::testing::Values(Resource::kSessions, Resource::kPds, Resource::kCqs,
                                           Resource::kQps, Resource::kMrs, Resource::kCmIds,
                                           Resource::kListeners, Resource::kRegisteredBytes,
                                           Resource::kSegmentBytes),
                         [](const auto& each) { return std::string(tenant::NameOf(each.param)); });

TEST_F(Pools, SessionGone_AllOfItIsGivenBack) {
  SetPool(kRed, {});
  auto red = Join(kRed);
  ASSERT_EQ(UseAll(*red), 0);
  const tenant::Pool& pool = *registry().FindPool(kRed);
  for (const Resource resource :
       {Resource::kSessions, Resource::kPds, Resource::kCqs, Resource::kQps, Resource::kMrs,
        Resource::kCmIds, Resource::kListeners, Resource::kRegisteredBytes,
        Resource::kSegmentBytes}) {
    EXPECT_GT(pool.used(resource), 0u) << tenant::NameOf(resource);
  }
  red.reset();
  host.Settle();
  for (size_t i = 0; i < tenant::kResources; ++i)
    EXPECT_EQ(pool.used(static_cast<Resource>(i)), 0u) << i;
}

TEST_F(Pools, QueryDevice_TellsThePoolsPeak) {
  tenant::Quota quota;
  quota.peak[Resource::kQps] = 7;
  quota.peak[Resource::kMrs] = 8;
  quota.peak[Resource::kAhs] = 9;
  SetPool(kRed, quota);
  auto red = Join(kRed);
  const auto query = TestClient::Request<rocegw_query_device>(ROCEGW_MSG_QUERY_DEVICE);
  const auto reply = red->Call<rocegw_device_reply>(query);
  EXPECT_EQ(reply.max_qp, 7u);
  EXPECT_EQ(reply.max_mr, 8u);
  EXPECT_EQ(reply.max_ah, 9u);
  EXPECT_EQ(reply.max_cq, session::Limits().cqs);
}

// 192.0.2.1 is at index 0, fd00::1 at index 2.
TEST_F(Pools, Addresses_EachPoolSeesItsOwn) {
  tenant::PoolSettings settings;
  settings.name = kRed;
  settings.slots = 0;
  settings.addresses = {wire::Gid::FromV4(0xC0000201)};
  host.server->SetPool(settings, {});
  const auto indices = [](TestClient& client) {
    auto query = TestClient::Request<rocegw_query_gids>(ROCEGW_MSG_QUERY_GIDS);
    const auto reply = client.Call<rocegw_gids_reply>(query);
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < reply.count; ++i) all.push_back(reply.entry[i].index);
    return all;
  };
  auto red = Join(kRed);
  auto blue = Join(kBlue);
  EXPECT_EQ(indices(*red), std::vector<uint32_t>{0});
  EXPECT_EQ(indices(*blue), std::vector<uint32_t>{2});
  ASSERT_EQ(UseAll(*red), 0);
  for (const auto& worker : host.workers) {
    for (const auto& [id, linked] : worker->sessions) {
      for (const auto& [qpn, qp] : linked.qps) {
        EXPECT_FALSE(qp.config.gids->entries[0].IsZero());
        EXPECT_TRUE(qp.config.gids->entries[2].IsZero());
      }
    }
  }
  host.server->RemovePool(kRed);
  red.reset();
  host.Settle();
  EXPECT_EQ(indices(*blue), (std::vector<uint32_t>{0, 2}));
}

TEST_F(Pools, AllowedPeers_RtrElsewhereIsEacces) {
  tenant::TenantSettings tenant;
  tenant.name = "tenants/red";
  tenant.allowed_peers = {{wire::Gid::FromV4(0xC0000200), 96 + 24}};
  host.server->SetTenant(tenant);
  tenant::PoolSettings settings;
  settings.name = kRed;
  settings.slots = 0;
  settings.allowed_peers = {{wire::Gid::FromV4(0xC0000208), 96 + 29}};
  host.server->SetPool(settings, {});
  auto red = Join(kRed);
  const uint32_t context = red->OpenContext();
  const uint32_t pd = red->AllocPd(context);
  const uint32_t cq = red->CreateCq(context).handle;
  const auto qp = red->CreateQp(pd, cq);
  rocegw_qp_attr attr{};
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kInit);
  attr.port_num = 1;
  red->Modify(
      qp.handle,
      verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags, attr);
  attr.qp_state = static_cast<uint32_t>(verbs::QpState::kRtr);
  attr.path_mtu = 3;
  attr.dest_qpn = 5;
  attr.av.dgid[10] = attr.av.dgid[11] = 0xFF;
  attr.av.dgid[12] = 192;
  attr.av.dgid[14] = 2;
  constexpr uint32_t kMask = verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu |
                             verbs::kAttrDestQpn | verbs::kAttrRqPsn | verbs::kAttrMaxDestRdAtomic |
                             verbs::kAttrMinRnrTimer;
  attr.av.dgid[15] = 2;
  EXPECT_EQ(red->Modify(qp.handle, kMask, attr), EACCES) << "the tenant may, the pool may not";
  EXPECT_EQ(LastEvent().first,
            std::string(kRed) + ": its programs may not talk to 192.0.2.2 (allowed_peers)");
  EXPECT_EQ(registry().FindPool(kRed)->peers_refused(), 1u);
  attr.av.dgid[15] = 9;
  EXPECT_EQ(red->Modify(qp.handle, kMask, attr), 0);
  bool has_rules = false;
  for (const auto& worker : host.workers) {
    for (const auto& [id, linked] : worker->sessions) {
      for (const auto& [qpn, known] : linked.qps)
        has_rules |= known.config.peers != nullptr && known.config.peers->pool.size() == 1;
    }
  }
  EXPECT_TRUE(has_rules);

  // Narrower rules exclude a connected peer, and its connection is closed.
  settings.allowed_peers = {{wire::Gid::FromV4(0xC000020A), 128}};
  host.server->SetPool(settings, {});
  host.Settle();
  EXPECT_EQ(LastEvent().first,
            std::string(kRed) +
                ": its programs may not talk to 192.0.2.9 any more (allowed_peers); queue pairs "
                "that failed: 1");
  EXPECT_EQ(registry().FindPool(kRed)->peers_refused(), 2u);
  const auto configured = [&] {
    std::vector<std::pair<verbs::QpState, const verbs::PeerRules*>> all;
    for (const auto& worker : host.workers) {
      for (const auto& [id, linked] : worker->sessions) {
        for (const auto& [qpn, known] : linked.qps)
          all.emplace_back(known.attributes.state, known.config.peers);
      }
    }
    return all;
  };
  ASSERT_EQ(configured().size(), 1u);
  EXPECT_EQ(configured()[0].first, verbs::QpState::kError);
  EXPECT_FALSE(configured()[0].second->Allow(wire::Gid::FromV4(0xC0000209)));
  EXPECT_TRUE(configured()[0].second->Allow(wire::Gid::FromV4(0xC000020A)));
  // The tenant's rules hold for its pools as well.
  settings.allowed_peers = {};
  host.server->SetPool(settings, {});
  tenant.allowed_peers = {};
  host.server->SetTenant(tenant);
  host.Settle();
  EXPECT_EQ(configured()[0].second, nullptr);
}

TEST_F(Pools, Window_ReachesQueuePairsAndEndpoints) {
  tenant::PoolSettings settings;
  settings.name = kRed;
  settings.window_bytes = 65536;
  registry().SetPool(settings);
  auto red = Join(kRed);
  auto blue = Join(kBlue);
  for (TestClient* client : {red.get(), blue.get()}) {
    const uint32_t context = client->OpenContext();
    const uint32_t pd = client->AllocPd(context);
    const uint32_t cq = client->CreateCq(context).handle;
    for (const uint32_t type : {ROCEGW_QPT_RC, ROCEGW_QPT_ENDPOINT}) {
      rocegw_create_qp create = TestClient::QpRequest(pd, cq, type);
      if (type == ROCEGW_QPT_ENDPOINT) create.service_mode = ROCEGW_SERVICE_BY_INITIATOR;
      client->Call<rocegw_qp_reply>(create);
      ASSERT_EQ(client->error(), 0);
    }
  }
  std::multiset<std::pair<verbs::QpType, uint32_t>> windows;
  for (const auto& worker : host.workers) {
    for (const auto& [id, linked] : worker->sessions) {
      for (const auto& [qpn, qp] : linked.qps)
        windows.emplace(qp.config.type, qp.config.window_bytes);
    }
  }
  using enum verbs::QpType;
  EXPECT_EQ(windows, (std::multiset<std::pair<verbs::QpType, uint32_t>>{
                         {kRc, 0}, {kRc, 65536}, {kEndpoint, 0}, {kEndpoint, 65536}}));
}

TEST_F(Pools, PoolRemoved_SessionGoesOnGetsNothingNewAndIsTheLast) {
  SetPool(kRed, {});
  auto red = Join(kRed);
  const uint32_t context = red->OpenContext();
  ASSERT_NE(red->AllocPd(context), 0u);
  registry().RemovePool(kRed);
  EXPECT_EQ(red->AllocPd(context), 0u);
  EXPECT_EQ(red->error(), ENOMEM);
  EXPECT_EQ(LastEvent().first,
            std::string(kRed) + ": no more pds, the pool is not in the configuration any more");
  red->OpenContext();
  EXPECT_EQ(red->error(), 0);
  red.reset();
  host.Settle();
  registry().ForEachPool([](const tenant::Pool& pool) { EXPECT_FALSE(pool.leaving()); });
}

TEST_F(Pools, Snapshot_ShowsPoolsLimitsAndEvents) {
  tenant::Quota quota;
  quota.peak[Resource::kPds] = 1;
  quota.committed[Resource::kPds] = 1;
  SetPool(kRed, quota);
  auto red = Join(kRed);
  const uint32_t context = red->OpenContext();
  red->AllocPd(context);
  red->AllocPd(context);
  session::StateSnapshot seen;
  host.server->Snapshot({.sessions = true, .pools = true, .events = true},
                        [&](session::StateSnapshot snapshot) { seen = std::move(snapshot); });
  host.Settle();
  ASSERT_EQ(seen.sessions.size(), 1u);
  EXPECT_EQ(seen.sessions[0].pool, kRed);
  ASSERT_EQ(seen.pools.size(), 3u);
  EXPECT_EQ(seen.pools[1].name, "tenants/default/pools/default");
  const session::PoolRow& row = seen.pools[2];
  EXPECT_EQ(row.name, kRed);
  ASSERT_EQ(row.limits.size(), tenant::kLimits + 3) << "and what is no number of the pool";
  const session::LimitRow& pds = row.limits[static_cast<size_t>(Resource::kPds)];
  EXPECT_EQ(pds.limit, "pds");
  EXPECT_EQ(pds.used, 1u);
  EXPECT_EQ(pds.committed, 1u);
  EXPECT_EQ(pds.peak, 1u);
  EXPECT_EQ(pds.refused, 1u);
  ASSERT_EQ(seen.events.size(), 1u);
  EXPECT_EQ(seen.events[0].reason, "QUOTA_EXCEEDED");
  EXPECT_EQ(seen.events[0].object, kRed);
}

int CountAhs(TestClient& client, uint32_t type, uint32_t count, uint32_t* granted = nullptr) {
  auto request = TestClient::Request<rocegw_ahs>(type);
  request.count = count;
  const auto reply = client.Call<rocegw_ahs_reply>(request);
  if (granted != nullptr) *granted = reply.count;
  return client.error();
}

TEST_F(Pools, AddressHandles_CountAgainstTheLimit_OneByOneWhenItIsNear) {
  tenant::Quota quota;
  quota.peak[Resource::kAhs] = 40;
  SetPool(kRed, quota);
  auto first = Join(kRed);
  uint32_t granted = 0;
  EXPECT_EQ(CountAhs(*first, ROCEGW_MSG_TAKE_AHS, 64, &granted), 0);
  EXPECT_EQ(granted, 2u) << "a sixteenth of what is left";
  for (uint32_t total = granted; total < 40; total += granted)
    ASSERT_EQ(CountAhs(*first, ROCEGW_MSG_TAKE_AHS, 64, &granted), 0) << total;
  EXPECT_EQ(granted, 1u);
  EXPECT_EQ(CountAhs(*first, ROCEGW_MSG_TAKE_AHS, 64), ENOMEM);
  EXPECT_TRUE(host.Told("limit of ahs reached, which is 40"));

  auto second = Join(kRed);
  EXPECT_EQ(CountAhs(*second, ROCEGW_MSG_TAKE_AHS, 1), ENOMEM);
  EXPECT_EQ(CountAhs(*first, ROCEGW_MSG_GIVE_AHS, 3), 0);
  EXPECT_EQ(CountAhs(*second, ROCEGW_MSG_TAKE_AHS, 64, &granted), 0);
  EXPECT_EQ(granted, 1u);
  first->Disconnect();
  host.Settle();
  EXPECT_EQ(registry().FindPool(kRed)->used(Resource::kAhs), 1u) << "a program's go with it";
}

TEST_F(Pools, AddressHandlesThatWereNotTaken_AreNotGivenBack) {
  SetPool(kRed, {});
  auto client = Join(kRed);
  EXPECT_EQ(CountAhs(*client, ROCEGW_MSG_TAKE_AHS, 0), EINVAL);
  EXPECT_EQ(CountAhs(*client, ROCEGW_MSG_GIVE_AHS, 1), EINVAL);
  EXPECT_EQ(CountAhs(*client, ROCEGW_MSG_TAKE_AHS, 1), 0);
  EXPECT_EQ(CountAhs(*client, ROCEGW_MSG_GIVE_AHS, UINT32_MAX), EINVAL);
  EXPECT_EQ(registry().FindPool(kRed)->used(Resource::kAhs), 1u);
}

}  // namespace
}  // namespace rocegw::testing
