// SPDX-License-Identifier: Apache-2.0
// Channels that queue pairs of a pool use, and the pool's limit: two real gateways, of which the
// other has several workers, so that there are several channels to it.
#include "gateway/worker/channels/channel_references.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "gateway/memory/copier.h"
#include "gateway/tenant/registry.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

using tenant::Resource;

constexpr char kPool[] = "tenants/red/pools/a";
constexpr char kOther[] = "tenants/blue/pools/a";
constexpr uint32_t kKeyOfEndpoints = 0x4711;

// Memory that reads as zeros.
class ZeroMemory final : public memory::MemorySpace {
 public:
  size_t Execute(std::span<memory::MemoryOp> ops, memory::MemoryCounts&) override {
    for (const memory::MemoryOp& op : ops) {
      if (op.kind == memory::OpKind::kRead) std::fill_n(op.buffer, op.length, uint8_t{0});
    }
    return ops.size();
  }
};

class ChannelReferencesTest : public ::testing::Test {
 protected:
  ChannelReferencesTest() {
    for (const char* const name : {"tenants/red", "tenants/blue"}) {
      tenant::TenantSettings settings;
      settings.name = name;
      registry_.SetTenant(settings);
    }
    pool_ = &Set(kPool, 1);
    other_ = &Set(kOther, tenant::kUnlimited);
  }
  ~ChannelReferencesTest() override {
    for (RingEnd* const end : left_) gateways_->Remove(0, *end);
    EXPECT_EQ(pool_->used(Resource::kChannels), 0u);
    EXPECT_EQ(other_->used(Resource::kChannels), 0u);
  }

  tenant::Pool& Set(const char* name, uint64_t channels) {
    tenant::PoolSettings settings;
    settings.name = name;
    settings.uid = name;
    settings.quota.peak[Resource::kChannels] = channels;
    return registry_.SetPool(settings);
  }
  // Sessions 1 and 2 of this side belong to the pool, session 3 to the other pool; one peer with
  // that many workers.
  void Start(size_t workers, bool untrusted = false, uint32_t paths = 1) {
    GatewayPairOptions options;
    options.workers[1] = workers;
    options.channels = true;
    options.channel_paths = paths;
    options.shares[0] = {&pool_->share(), &pool_->share(), &other_->share()};
    if (untrusted) {
      auto copier = memory::Copier::Start(std::make_shared<ZeroMemory>(), nullptr, {});
      copier_ = std::move(*copier);
      options.copiers[0] = {copier_.get(), copier_.get(), copier_.get()};
    }
    gateways_.emplace(options);
  }
  // Connects to a queue pair of that worker of the peer.
  RingEnd& Connect(uint32_t session, uint32_t peer_worker,
                   verbs::ServiceMode mode = verbs::ServiceMode::kByTarget) {
    RingOptions ring;
    ring.service_mode = mode;
    ring.handle = ++made_;
    ring.session = session;
    ring.qpn = 100 + made_;
    RingEnd& local = gateways_->AddQp(0, ring);
    ring.session = 1;
    ring.qpn = peer_worker << port::kBucketShift | (100 + made_);
    RingEnd& remote = gateways_->AddQp(1, ring);
    gateways_->Connect(local, remote);
    left_.push_back(&local);
    return local;
  }
  void Remove(RingEnd& end) {
    gateways_->Remove(0, end);
    std::erase(left_, &end);
  }
  void Reset(RingEnd& end) {
    verbs::QpAttributes want;
    want.state = verbs::QpState::kReset;
    const worker::ModifyQp reset{
        SessionId{end.options().session}, Qpn{end.options().qpn}, verbs::kAttrState, want, {}};
    ASSERT_EQ(gateways_->Call(0, 0, {0, reset}).error, 0);
  }
  worker::QpSnapshot Snapshot(const RingEnd& end) {
    const worker::QueryQp query{SessionId{end.options().session}, Qpn{end.options().qpn}};
    return gateways_->Call(0, 0, {0, query}).qps.at(0);
  }
  bool OnChannel(const RingEnd& end) { return Snapshot(end).on_channel; }
  // Writes a message and expects it to complete, by any path. side: of the sender.
  void Write(RingEnd& from, int side = 0) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::kKey[1 - side];
    const uint32_t session = from.options().session;
    ASSERT_TRUE(
        from.PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::KeyOf(side, session).value}}));
    gateways_->Ring(side, from);
    std::vector<rocegw_cqe> done;
    for (int i = 0; i < 100000 && done.empty(); ++i) {
      gateways_->Step();
      done = from.Poll();
    }
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint8_t>(verbs::WcStatus::kSuccess));
  }
  // Returns the number of refusals reported so far.
  size_t Told() const {
    return static_cast<size_t>(std::ranges::count_if(gateways_->notices, [&](const auto& notice) {
      const auto* const refused = std::get_if<worker::ChannelRefused>(&notice.body);
      return refused != nullptr && refused->pool == &pool_->share();
    }));
  }
  uint64_t Refused() const { return pool_->refused(static_cast<size_t>(Resource::kChannels)); }
  uint64_t used() const { return pool_->used(Resource::kChannels); }

  tenant::Registry registry_{tenant::Amounts::Of(tenant::kUnlimited)};
  tenant::Pool* pool_ = nullptr;
  tenant::Pool* other_ = nullptr;
  std::unique_ptr<memory::Copier> copier_;
  std::optional<GatewayPair> gateways_;
  uint32_t made_ = 0;
  std::vector<RingEnd*> left_;
};

TEST_F(ChannelReferencesTest, OneChannel_CountsOnceHoweverManyShareIt) {
  Start(2);
  RingEnd& first = Connect(1, 0);
  RingEnd& second = Connect(2, 0);
  EXPECT_TRUE(OnChannel(first));
  EXPECT_TRUE(OnChannel(second)) << "of another session of the pool";
  EXPECT_EQ(used(), 1u);
  Remove(first);
  EXPECT_EQ(used(), 1u);
  Remove(second);
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(Refused(), 0u);
}

TEST_F(ChannelReferencesTest, OneMoreThanTheLimit_GoesAsPlainRoCEv2AndSaysWhy) {
  Start(2);
  RingEnd& first = Connect(1, 0);
  RingEnd& second = Connect(1, 1);
  EXPECT_TRUE(OnChannel(first));
  EXPECT_FALSE(OnChannel(second));
  EXPECT_EQ(Snapshot(second).declined, wire::ChannelReason::kNotAllowed);
  EXPECT_EQ(used(), 1u);
  EXPECT_EQ(Refused(), 1u);
  ASSERT_EQ(Told(), 1u);
  Write(first);
  Write(second);
}

// Its queue pairs use staged carriers, one per session, above the channel.
TEST_F(ChannelReferencesTest, UntrustedPool_ReferencesTheChannelBelow) {
  Start(2, true);
  RingEnd& first = Connect(1, 0);
  RingEnd& second = Connect(2, 0);
  EXPECT_TRUE(OnChannel(second));
  EXPECT_EQ(used(), 1u);
  EXPECT_FALSE(OnChannel(Connect(2, 1)));
  Write(second);
  Remove(first);
  EXPECT_EQ(used(), 1u);
  Reset(second);
  EXPECT_EQ(used(), 0u);
}

// The limit keeps a pool from using up a worker's channel numbers.
TEST_F(ChannelReferencesTest, OneMoreThanTheLimit_IsNotOpened) {
  GatewayPairOptions options;
  options.workers[1] = 2;
  options.channels = true;
  options.channel_features[1] = 0;  // the peer supports no channels
  options.shares[0] = {&pool_->share()};
  gateways_.emplace(options);
  Connect(1, 0);
  Connect(1, 1);
  EXPECT_EQ(gateways_->Call(0, 0, {0, worker::SnapshotChannels{}}).channels.size(), 1u);
}

TEST_F(ChannelReferencesTest, AnotherPool_IsNotConcerned) {
  Start(2);
  Connect(1, 0);
  EXPECT_TRUE(OnChannel(Connect(3, 0))) << "the same channel";
  EXPECT_TRUE(OnChannel(Connect(3, 1))) << "another one, which the pool cannot have";
  EXPECT_EQ(other_->used(Resource::kChannels), 2u);
  EXPECT_FALSE(OnChannel(Connect(1, 1))) << "that somebody else has it does not help";
  EXPECT_EQ(used(), 1u);
}

TEST_F(ChannelReferencesTest, Tenant_LimitsItsPoolsTogether) {
  tenant::TenantSettings settings;
  settings.name = "tenants/red";
  settings.quota.peak[Resource::kChannels] = 1;
  registry_.SetTenant(settings);
  Set(kPool, 5);
  Start(2);
  Connect(1, 0);
  EXPECT_FALSE(OnChannel(Connect(1, 1)));
  const auto& notices = gateways_->notices;
  const auto told = std::ranges::find_if(notices, [](const auto& notice) {
    return std::holds_alternative<worker::ChannelRefused>(notice.body);
  });
  ASSERT_NE(told, notices.end());
  EXPECT_EQ(pool_->ChannelRefused(std::get<worker::ChannelRefused>(told->body).by).text,
            "tenants/red/pools/a: limit of channels reached, which is 1 for its tenant "
            "tenants/red, less what is committed to others");
}

TEST_F(ChannelReferencesTest, Reset_GivesBackAndWhoComesNextGetsIt) {
  Start(2);
  RingEnd& first = Connect(1, 0);
  Reset(first);
  EXPECT_EQ(used(), 0u);
  EXPECT_TRUE(OnChannel(Connect(1, 1)));
  EXPECT_EQ(used(), 1u);
}

TEST_F(ChannelReferencesTest, LoweredLimit_RevokesNothing) {
  Set(kPool, 2);
  Start(3);
  RingEnd& first = Connect(1, 0);
  RingEnd& second = Connect(1, 1);
  Set(kPool, 1);
  EXPECT_EQ(used(), 2u);
  Write(first);
  Write(second);
  Remove(second);
  EXPECT_FALSE(OnChannel(Connect(1, 2)));
  EXPECT_TRUE(OnChannel(Connect(1, 0))) << "on a channel that it uses already";
}

TEST_F(ChannelReferencesTest, PeerThatNeverAnswers_GivesBackAndGoesOn) {
  GatewayPairOptions options;
  options.channels = true;
  options.channel_features[1] = 0;
  options.shares[0] = {&pool_->share()};
  gateways_.emplace(options);
  RingEnd& end = Connect(1, 0);
  EXPECT_EQ(used(), 1u);
  Write(end);
  EXPECT_EQ(Snapshot(end).declined, wire::ChannelReason::kPathFailed);
  EXPECT_EQ(used(), 0u);
}

// The peer's end is lost permanently: the channel closes, and the queue pair fails.
TEST_F(ChannelReferencesTest, ChannelThatFails_GivesBack) {
  TamperScript script(1);
  GatewayPairOptions options;
  options.channels = true;
  options.script = &script;
  options.shares[0] = {&pool_->share()};
  gateways_.emplace(options);
  RingEnd& end = Connect(1, 0);
  Write(end);
  EXPECT_EQ(used(), 1u);
  script.Set({.drop = 1});
  rocegw_send_wqe wqe{};
  wqe.opcode = ROCEGW_WR_RDMA_WRITE;
  wqe.u.rdma.remote_address = GatewayPair::kBase;
  wqe.u.rdma.rkey = GatewayPair::kKey[1];
  ASSERT_TRUE(end.PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
  gateways_->Ring(0, end);
  for (int i = 0; i < 60000 && used() != 0; ++i) gateways_->Step(Milliseconds(1));
  EXPECT_EQ(used(), 0u);
  EXPECT_FALSE(OnChannel(end));
}

// The queue pair uses as many paths as its pool's limit allows.
TEST_F(ChannelReferencesTest, PathsBeside_CountAsWell) {
  Set(kPool, 2);
  Start(1, false, 4);
  RingEnd& end = Connect(1, 0, verbs::ServiceMode::kUnordered);
  EXPECT_EQ(used(), 1u);
  for (int i = 0; i < 4; ++i) Write(end);
  EXPECT_EQ(Snapshot(end).beside.size(), 1u);
  EXPECT_EQ(used(), 2u);
  EXPECT_GE(Refused(), 1u);
  Reset(end);
  EXPECT_EQ(used(), 0u);
}

// The peer's pool answers by the paths that the other side opened. That counts for nothing, neither
// while they are used nor afterwards.
TEST_F(ChannelReferencesTest, PathsOfAnswers_AreNoReferences) {
  Set(kPool, 4);
  GatewayPairOptions options;
  options.channels = true;
  options.channel_paths = 2;
  options.shares[0] = {&pool_->share()};
  options.shares[1] = {&other_->share()};
  gateways_.emplace(options);
  const auto unordered = [&](int side, uint32_t qpn) -> RingEnd& {
    RingOptions ring;
    ring.service_mode = verbs::ServiceMode::kUnordered;
    ring.handle = ++made_;
    ring.qpn = qpn;
    return gateways_->AddQp(side, ring);
  };
  RingEnd& here = unordered(0, 101);
  RingEnd& there = unordered(1, 102);
  gateways_->Connect(here, there);
  for (int i = 0; i < 4; ++i) Write(here);
  EXPECT_EQ(used(), 2u);
  EXPECT_EQ(other_->used(Resource::kChannels), 1u) << "its own channel";
  gateways_->Remove(1, there);
  gateways_->Remove(0, here);
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(other_->used(Resource::kChannels), 0u);
  // Requests of the pool that use the same channels later are counted.
  RingEnd& from = unordered(1, 104);
  RingEnd& to = unordered(0, 103);
  gateways_->Connect(to, from);
  for (int i = 0; i < 4; ++i) Write(from, 1);
  EXPECT_EQ(other_->used(Resource::kChannels), 2u);
  gateways_->Remove(1, from);
  gateways_->Remove(0, to);
}

class EndpointChannelReferences : public ChannelReferencesTest {
 protected:
  RingEnd& AddEndpoint(int side, uint32_t qpn,
                       verbs::ServiceMode mode = verbs::ServiceMode::kByTarget) {
    RingOptions ring;
    ring.type = verbs::QpType::kEndpoint;
    ring.service_mode = mode;
    ring.handle = ++made_;
    ring.qpn = qpn;
    RingEnd& end = gateways_->AddQp(side, ring);
    verbs::QpAttributes want;
    want.qkey = kKeyOfEndpoints;
    const auto worker = static_cast<WorkerIndex>(qpn >> port::kBucketShift);
    const auto step = [&](verbs::QpState state, uint32_t mask) {
      want.state = state;
      const worker::ModifyQp body{SessionId{1}, Qpn{qpn}, verbs::kAttrState | mask, want, {}};
      EXPECT_EQ(gateways_->Call(side, worker, {0, body}).error, 0);
    };
    step(verbs::QpState::kInit, verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey);
    step(verbs::QpState::kRtr, 0);
    step(verbs::QpState::kRts, verbs::kAttrSqPsn);
    return end;
  }
  void AddPeer(uint32_t handle, const RingEnd& there) {
    worker::LinkPeer link{SessionId{1}, handle, {}};
    link.peer.endpoint = Qpn{there.options().qpn};
    link.peer.key = kKeyOfEndpoints;
    link.peer.path.source = GatewayPair::GidOf(0);
    link.peer.path.destination = GatewayPair::GidOf(1);
    link.peer.target = gateways_->TargetOf(1, there);
    ASSERT_EQ(gateways_->Call(0, 0, {0, link}).error, 0);
  }
  verbs::WcStatus WriteTo(RingEnd& from, uint32_t peer) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.peer = peer;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    EXPECT_TRUE(from.PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
    gateways_->Ring(0, from);
    std::vector<rocegw_cqe> done;
    for (int i = 0; i < 100000 && done.empty(); ++i) {
      gateways_->Step();
      done = from.Poll();
    }
    EXPECT_EQ(done.size(), 1u);
    return done.empty() ? verbs::WcStatus::kFatal
                        : static_cast<verbs::WcStatus>(done.front().status);
  }
};

// Endpoints have no other transport: such a message fails, and the endpoint continues. Messages in
// flight change all the time, the counted channels do not.
TEST_F(EndpointChannelReferences, MessageThatNeedsOneMore_Fails) {
  Start(2);
  RingEnd& end = AddEndpoint(0, 50);
  AddPeer(1, AddEndpoint(1, 51));
  AddPeer(2, AddEndpoint(1, 1u << port::kBucketShift | 52));
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(WriteTo(end, 1), verbs::WcStatus::kSuccess);
  EXPECT_EQ(used(), 1u);
  EXPECT_EQ(WriteTo(end, 2), verbs::WcStatus::kRetryExceeded);
  EXPECT_EQ(WriteTo(end, 2), verbs::WcStatus::kRetryExceeded);
  EXPECT_EQ(Refused(), 2u);
  EXPECT_EQ(Told(), 1u) << "not for every message";
  EXPECT_EQ(WriteTo(end, 1), verbs::WcStatus::kSuccess);
  RingEnd& connected = Connect(1, 0);
  EXPECT_TRUE(OnChannel(connected));
  Remove(connected);
  EXPECT_EQ(used(), 1u) << "the endpoint is still there";
  gateways_->Remove(0, end);
  EXPECT_EQ(used(), 0u);
}

// Requests without order look for further paths; if there are none, that is not a refusal.
TEST_F(EndpointChannelReferences, NoOtherPath_IsNoRefusal) {
  Start(1);
  RingEnd& end = AddEndpoint(0, 50, verbs::ServiceMode::kUnordered);
  AddPeer(1, AddEndpoint(1, 51, verbs::ServiceMode::kUnordered));
  for (int i = 0; i < 3; ++i) {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.u.rdma.peer = 1;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    EXPECT_TRUE(end.PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
  }
  EXPECT_EQ(WriteTo(end, 1), verbs::WcStatus::kSuccess);
  EXPECT_EQ(Refused(), 0u);
  EXPECT_EQ(used(), 1u);
  gateways_->Remove(0, end);
}

// An idle channel that closes no longer counts.
TEST_F(EndpointChannelReferences, IdleChannel_IsGivenBackWhenItCloses) {
  Start(2);
  RingEnd& end = AddEndpoint(0, 50);
  AddPeer(1, AddEndpoint(1, 51));
  AddPeer(2, AddEndpoint(1, 1u << port::kBucketShift | 52));
  EXPECT_EQ(WriteTo(end, 1), verbs::WcStatus::kSuccess);
  for (int i = 0; i < 1000 && used() != 0; ++i) gateways_->Step(Milliseconds(100));
  EXPECT_EQ(used(), 0u);
  EXPECT_EQ(WriteTo(end, 2), verbs::WcStatus::kSuccess);
  EXPECT_EQ(used(), 1u);
  gateways_->Remove(0, end);
}

}  // namespace
}  // namespace rocegw::testing
