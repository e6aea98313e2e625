// SPDX-License-Identifier: Apache-2.0
// The peers that a pool's queue pairs may talk to change while they run.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "gateway/tenant/share.h"
#include "tests/support/network/gateway_pair.h"

namespace rocegw::testing {
namespace {

using verbs::QpType;
using verbs::WcStatus;

// Parameter: whether queue pairs use channels.
class PeerRulesOfWorker : public ::testing::TestWithParam<bool> {
 protected:
  PeerRulesOfWorker() {
    GatewayPairOptions options;
    options.shares[0] = {&pool_, &other_};
    options.channels = GetParam();
    gateways_.emplace(options);
    elsewhere_.pool = {{wire::Gid::FromV4(0x0A000000), 96 + 8}};
    there_.pool = {{GatewayPair::GidOf(1), 128}};
  }
  // Connects a queue pair; the peer has one receive posted.
  RingEnd& Connect(uint32_t session, QpType type = QpType::kRc) {
    RingOptions ring;
    ring.type = type;
    ring.handle = ++made_;
    ring.session = session;
    ring.qpn = 100 + made_;
    RingEnd& local = gateways_->AddQp(0, ring);
    ring.session = 1;
    RingEnd& remote = gateways_->AddQp(1, ring);
    gateways_->Connect(local, remote);
    EXPECT_TRUE(
        local.PostReceive(7, {{GatewayPair::kBase, 100, GatewayPair::KeyOf(0, session).value}}));
    return local;
  }
  std::vector<worker::PeerRevoked> Use(const verbs::PeerRules* rules) {
    return gateways_->Call(0, 0, {0, worker::UsePeerRules{&pool_, rules}}).revoked;
  }
  verbs::QpState StateOf(const RingEnd& end) {
    const worker::QueryQp query{SessionId{end.options().session}, Qpn{end.options().qpn}};
    return gateways_->Call(0, 0, {0, query}).qps.at(0).attributes.state;
  }
  // Returns the numbers of queue pairs that reported a failure.
  std::vector<uint32_t> Failed() const {
    std::vector<uint32_t> all;
    for (const auto& notice : gateways_->notices) {
      const auto* const raised = std::get_if<worker::AsyncEventRaised>(&notice.body);
      if (raised != nullptr && raised->event == verbs::AsyncEvent::kQpFatal)
        all.push_back(raised->qpn.value);
    }
    return all;
  }

  tenant::Share pool_{nullptr};
  tenant::Share other_{nullptr};
  verbs::PeerRules elsewhere_;
  verbs::PeerRules there_;
  std::optional<GatewayPair> gateways_;
  uint32_t made_ = 0;
};

INSTANTIATE_TEST_SUITE_P(, PeerRulesOfWorker, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "OnChannel" : "Native"; });

TEST_P(PeerRulesOfWorker, Connected_FailsFlushesAndTells) {
  RingEnd& reliable = Connect(1);
  RingEnd& unreliable = Connect(1, QpType::kUc);
  RingEnd& others = Connect(2);
  const auto revoked = Use(&elsewhere_);
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_EQ(revoked[0].peer, GatewayPair::GidOf(1));
  EXPECT_EQ(revoked[0].queue_pairs, 2u);
  for (RingEnd* const end : {&reliable, &unreliable}) {
    EXPECT_EQ(StateOf(*end), verbs::QpState::kError);
    const auto done = end->Poll();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint8_t>(WcStatus::kFlush));
  }
  EXPECT_EQ(Failed(), (std::vector{reliable.options().qpn, unreliable.options().qpn}));
  EXPECT_EQ(StateOf(others), verbs::QpState::kRts) << "another pool's";
  EXPECT_TRUE(Use(&elsewhere_).empty()) << "once";
}

TEST_P(PeerRulesOfWorker, StillAllowed_GoesOn) {
  RingEnd& end = Connect(1);
  EXPECT_TRUE(Use(&there_).empty());
  EXPECT_TRUE(Use(nullptr).empty());
  EXPECT_EQ(StateOf(end), verbs::QpState::kRts);
  EXPECT_TRUE(end.Poll().empty());
}

TEST_P(PeerRulesOfWorker, NotConnected_IsNotConcerned) {
  RingOptions ring;
  ring.qpn = 100;
  RingEnd& fresh = gateways_->AddQp(0, ring);
  EXPECT_TRUE(Use(&elsewhere_).empty());
  EXPECT_EQ(StateOf(fresh), verbs::QpState::kReset);
}

// Endpoints have no connection: each message is checked from then on.
TEST_P(PeerRulesOfWorker, Endpoint_ItsNextMessageFailsAndItGoesOn) {
  if (!GetParam()) return;
  RingEnd* ends[2] = {};
  for (int side = 0; side < 2; ++side) {
    RingOptions ring;
    ring.type = QpType::kEndpoint;
    ring.qpn = 50;
    ends[side] = &gateways_->AddQp(side, ring);
    verbs::QpAttributes want;
    const auto step = [&](verbs::QpState state, uint32_t mask) {
      want.state = state;
      const worker::ModifyQp body{SessionId{1}, Qpn{50}, verbs::kAttrState | mask, want, {}};
      ASSERT_EQ(gateways_->Call(side, 0, {0, body}).error, 0);
    };
    step(verbs::QpState::kInit, verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrQkey);
    step(verbs::QpState::kRtr, 0);
    step(verbs::QpState::kRts, verbs::kAttrSqPsn);
  }
  worker::LinkPeer link{SessionId{1}, 1, {}};
  link.peer.endpoint = Qpn{50};
  link.peer.path = {.source = GatewayPair::GidOf(0), .destination = GatewayPair::GidOf(1)};
  link.peer.target = gateways_->TargetOf(1, *ends[1]);
  ASSERT_EQ(gateways_->Call(0, 0, {0, link}).error, 0);
  const auto write = [&] {
    rocegw_send_wqe wqe{};
    wqe.opcode = ROCEGW_WR_RDMA_WRITE;
    wqe.flags = ROCEGW_WQE_SIGNALED;
    wqe.u.rdma.peer = 1;
    wqe.u.rdma.remote_address = GatewayPair::kBase;
    wqe.u.rdma.rkey = GatewayPair::kKey[1];
    EXPECT_TRUE(ends[0]->PostSend(wqe, {{GatewayPair::kBase, 100, GatewayPair::kKey[0]}}));
    gateways_->Ring(0, *ends[0]);
    std::vector<rocegw_cqe> done;
    for (int i = 0; i < 1000 && done.empty(); ++i) {
      gateways_->Step();
      done = ends[0]->Poll();
    }
    return done.empty() ? WcStatus::kFatal : static_cast<WcStatus>(done[0].status);
  };
  EXPECT_EQ(write(), WcStatus::kSuccess);
  EXPECT_TRUE(Use(&elsewhere_).empty());
  EXPECT_EQ(write(), WcStatus::kLocalQpOperation);
  Use(nullptr);
  EXPECT_EQ(write(), WcStatus::kSuccess);
}

}  // namespace
}  // namespace rocegw::testing
