// SPDX-License-Identifier: Apache-2.0
// Bursts of connections: how many REQs a listener has waiting, and when the next one is sent.
#include "gateway/cm/connection/request_window.h"

#include <gtest/gtest.h>

#include <variant>
#include <vector>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using testing::Exchange;
using testing::Host;
using testing::kOtherProgram;
using testing::kPort;
using testing::kProgram;
using testing::V4;

CmConfig Narrow() {
  CmConfig config;
  config.request_window = {4, 2, 6, Milliseconds(200)};
  return config;
}

class RequestStorm : public ::testing::Test {
 protected:
  std::vector<CmHandle> Connect(int count, uint16_t port = kPort) {
    std::vector<CmHandle> ids;
    for (int i = 0; i < count; ++i) {
      ids.push_back(client.Routed(server.address, port));
      EXPECT_EQ(client.Do(ids.back(), cm::Connect{Host::Params(next_qpn_++)}), 0);
    }
    return ids;
  }
  // Returns the number of REQs sent since the last call.
  size_t Sent() {
    size_t requests = 0;
    while (const auto mad = client.NextMad())
      requests += std::holds_alternative<wire::CmReq>(mad->body);
    return requests;
  }
  // Accepts all requests that the server's program has.
  int AcceptAll() {
    int accepted = 0;
    while (const auto event = server.NextEvent()) {
      if (event->type != EventType::kConnectRequest) continue;
      EXPECT_EQ(server.Do(event->id, Accept{Host::Params(next_qpn_++)}), 0);
      ++accepted;
    }
    return accepted;
  }

  Host client{V4(1), 1, Narrow()};
  Host server{V4(2), 2};
  uint32_t next_qpn_ = 0x100;
};

TEST_F(RequestStorm, MoreThanTheWindow_WaitForAnswers) {
  server.Listening(kPort, 100);
  const std::vector<CmHandle> ids = Connect(20);
  EXPECT_EQ(client.actions.mads.size(), 4u);
  EXPECT_EQ(client.StateOf(ids[3]), "REQ sent");
  int all = 0;
  for (int round = 0; round < 10; ++round) {
    Exchange(client, server);
    all += AcceptAll();
  }
  EXPECT_EQ(all, 20);
  EXPECT_EQ(client.engine().counters().mads_resent, 0u);
  for (const CmHandle id : ids) EXPECT_EQ(client.StateOf(id), "REP received");
}

TEST_F(RequestStorm, SlowListener_GetsFewerAfterAnInterval) {
  Connect(20);  // no peer answers
  EXPECT_EQ(Sent(), 4u);
  client.Advance(Milliseconds(199));
  EXPECT_EQ(Sent(), 0u);
  client.Advance(Milliseconds(1));
  // Four are repeated, and the window is two from now on.
  EXPECT_EQ(Sent(), 4u + 2u);
  EXPECT_EQ(client.engine().counters().mads_resent, 4u);
}

TEST_F(RequestStorm, OtherListeners_DoNotWait) {
  Connect(10);
  EXPECT_EQ(Sent(), 4u);
  Connect(1, kPort + 1);
  EXPECT_EQ(Sent(), 1u);
}

TEST_F(RequestStorm, DestroyedConnections_GiveTheirPlacesBack) {
  const std::vector<CmHandle> ids = Connect(10);
  EXPECT_EQ(Sent(), 4u);
  EXPECT_EQ(client.Do(ids[0], DestroyId{}), 0);
  EXPECT_EQ(Sent(), 1u);
  // Destroyed waiting ones are skipped.
  for (int i = 5; i < 9; ++i) EXPECT_EQ(client.Do(ids[i], DestroyId{}), 0);
  EXPECT_EQ(Sent(), 0u);
  EXPECT_EQ(client.Do(ids[1], DestroyId{}), 0);
  EXPECT_EQ(Sent(), 1u);
  EXPECT_EQ(client.StateOf(ids[9]), "REQ sent");
}

TEST_F(RequestStorm, DeathOfTheProgram_LeavesNobodyWaiting) {
  Connect(10);
  client.engine().DropOwner(kProgram, client.now, client.actions);
  Sent();
  EXPECT_EQ(client.engine().connection_count(), 0u);
  Connect(1);
  EXPECT_EQ(Sent(), 1u);
}

TEST(RequestWindow, Room_HalvesOnceAnInterval_AndGrowsByOne) {
  RequestWindow window({8, 2, 9, Milliseconds(200)});
  const RequestWindow::Line line{kProgram, V4(2), 1};
  const RequestWindow::Line other{kOtherProgram, V4(2), 1};
  for (uint32_t i = 0; i < 8; ++i) EXPECT_EQ(window.Enter(line, i), 0u);
  for (uint32_t i = 8; i < 30; ++i) EXPECT_NE(window.Enter(line, i), 0u);
  EXPECT_EQ(window.Enter(other, 100), 0u);
  TimePoint now{Seconds(1).ns};
  window.Leave(line, RequestWindow::End::kAnswered, now);
  EXPECT_EQ(window.TakeTurns(), (std::vector<uint32_t>{8, 9}));  // nine of nine
  window.Leave(line, RequestWindow::End::kAnswered, now);
  EXPECT_EQ(window.TakeTurns(), (std::vector<uint32_t>{10}));
  // Nine of four.
  window.Leave(line, RequestWindow::End::kRepeated, now);
  for (int i = 0; i < 4; ++i) window.Leave(line, RequestWindow::End::kRepeated, now);
  EXPECT_TRUE(window.TakeTurns().empty());
  window.Leave(line, RequestWindow::End::kGone, now);
  EXPECT_EQ(window.TakeTurns(), (std::vector<uint32_t>{11}));
  now = now + Milliseconds(200);
  window.Leave(line, RequestWindow::End::kRepeated, now);
  window.Leave(line, RequestWindow::End::kGone, now);
  EXPECT_TRUE(window.TakeTurns().empty());
  window.Leave(line, RequestWindow::End::kGone, now);
  EXPECT_EQ(window.TakeTurns(), (std::vector<uint32_t>{12}));
}

}  // namespace
}  // namespace rocegw::cm
