// SPDX-License-Identifier: Apache-2.0
// XRC connections: the fields that identify them, as in Linux, and the roles of both ends.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm::xrc {
namespace {

using testing::Exchange;
using testing::Host;
using testing::kPort;
using testing::kProgram;
using testing::V4;

TEST(XrcConnect, EndsAreNamedAsLinuxDoes_AndAskedForTheirHalf) {
  Host client{V4(1), 1};
  Host server{V4(2), 2};
  const CmHandle listener = server.Listening(kPort, 10, PortSpace::kIb, QpType::kXrcReceive);
  ASSERT_NE(listener, CmHandle{});
  const CmHandle active = client.Routed(server.address, kPort, PortSpace::kIb, QpType::kXrcSend);
  ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111)}), 0);
  const auto decoded = [](Host& host) {
    wire::CmMad mad;
    EXPECT_FALSE(host.actions.mads.empty());
    EXPECT_EQ(wire::DecodeMad(host.actions.mads.back().bytes, mad), metrics::DropReason::kNone);
    return mad;
  };
  const wire::CmMad asked = decoded(client);
  const auto* const req = std::get_if<wire::CmReq>(&asked.body);
  ASSERT_NE(req, nullptr);
  EXPECT_EQ(req->transport, wire::CmTransport::kExtended);
  EXPECT_EQ(req->extended_transport, wire::kXrcTransport);
  EXPECT_EQ(req->local_qpn, Qpn{0x111});
  EXPECT_EQ(req->initiator_depth, 2);
  EXPECT_EQ(req->responder_resources, 0);
  EXPECT_EQ(req->retry_count, 0);
  EXPECT_EQ(req->rnr_retry_count, 0);
  Exchange(client, server);
  const auto request = server.NextEvent();
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(request->type, EventType::kConnectRequest);
  EXPECT_EQ(request->info.qp_type, QpType::kXrcReceive);
  EXPECT_EQ(request->param.qpn, Qpn{0x111});
  ASSERT_EQ(server.Do(request->id, Accept{Host::Params(0x222)}), 0);
  const wire::CmMad answer = decoded(server);
  const auto* const rep = std::get_if<wire::CmRep>(&answer.body);
  ASSERT_NE(rep, nullptr);
  EXPECT_EQ(rep->local_eecn, 0x222u);
  EXPECT_EQ(rep->local_qpn, Qpn{0});
  EXPECT_TRUE(rep->srq);
  Exchange(client, server);
  const auto response = client.NextEvent();
  ASSERT_TRUE(response.has_value());
  ASSERT_EQ(response->type, EventType::kConnectResponse);
  EXPECT_EQ(response->param.qpn, Qpn{0x222});

  QpAttributes rtr, rts;
  ASSERT_EQ(client.engine().InitQpAttributes(kProgram, active, QpState::kRtr, rtr), 0);
  ASSERT_EQ(client.engine().InitQpAttributes(kProgram, active, QpState::kRts, rts), 0);
  EXPECT_EQ(rtr.dest_qpn, Qpn{0x222});
  EXPECT_EQ(rtr.mask & (kQpMaxDestRdAtomic | kQpMinRnrTimer), 0u);
  constexpr uint32_t kRequester = kQpRetryCount | kQpRnrRetry | kQpMaxRdAtomic;
  EXPECT_EQ(rts.mask & (kRequester | kQpTimeout), kRequester | kQpTimeout);
  EXPECT_EQ(rts.retry_count, 7);
  ASSERT_EQ(server.engine().InitQpAttributes(kProgram, request->id, QpState::kRtr, rtr), 0);
  ASSERT_EQ(server.engine().InitQpAttributes(kProgram, request->id, QpState::kRts, rts), 0);
  EXPECT_EQ(rtr.mask & (kQpMaxDestRdAtomic | kQpMinRnrTimer), kQpMaxDestRdAtomic | kQpMinRnrTimer);
  EXPECT_EQ(rtr.max_dest_rd_atomic, 4);
  EXPECT_EQ(rts.mask & (kRequester | kQpTimeout), static_cast<uint32_t>(kQpTimeout));

  ASSERT_EQ(client.Do(active, Establish{}), 0);
  Exchange(client, server);
  EXPECT_EQ(client.StateOf(active), "established");
  EXPECT_EQ(server.StateOf(request->id), "established");
}

TEST(XrcConnect, WhoOnlyReceives_DoesNotConnect) {
  Host client{V4(1), 1};
  const CmHandle id = client.Routed(V4(2), kPort, PortSpace::kIb, QpType::kXrcReceive);
  EXPECT_EQ(client.Do(id, cm::Connect{Host::Params(0x111)}), EINVAL);
}

}  // namespace
}  // namespace rocegw::cm::xrc
