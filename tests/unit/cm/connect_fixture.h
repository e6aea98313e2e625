// SPDX-License-Identifier: Apache-2.0
// A client and a server of the connection manager, and the steps of a connection between them.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {

using metrics::DropReason;
using testing::Exchange;
using testing::Host;
using testing::kOtherProgram;
using testing::kPort;
using testing::kProgram;
using testing::TextOf;
using testing::V4;

class ConnectTest : public ::testing::Test {
 protected:
  // Client has sent its REQ; the server has not received it.
  void Connect() {
    listener = server.Listening(kPort);
    active = client.Routed(server.address, kPort);
    ASSERT_EQ(client.Do(active, cm::Connect{Host::Params(0x111, "hello")}), 0);
  }
  // The server's program has the request.
  void Request() {
    Connect();
    Exchange(client, server);
    const auto event = server.NextEvent();
    ASSERT_TRUE(event.has_value());
    ASSERT_EQ(event->type, EventType::kConnectRequest);
    passive = event->id;
  }
  // The client has the REP.
  void Respond() {
    Request();
    ASSERT_EQ(server.Do(passive, Accept{Host::Params(0x222, "welcome")}), 0);
    Exchange(client, server);
    response = client.NextEvent();
    ASSERT_TRUE(response.has_value());
    ASSERT_EQ(response->type, EventType::kConnectResponse);
  }
  void Established() {
    Respond();
    ASSERT_EQ(client.Do(active, Establish{}), 0);
    Exchange(client, server);
    const auto event = server.NextEvent();
    ASSERT_TRUE(event.has_value());
    ASSERT_EQ(event->type, EventType::kEstablished);
    ASSERT_EQ(client.StateOf(active), "established");
    ASSERT_EQ(server.StateOf(passive), "established");
  }
  void Together(Duration by) {
    client.Advance(by);
    server.Advance(by);
  }

  Host client{V4(1), 1};
  Host server{V4(2), 2};
  CmHandle listener, active, passive;
  std::optional<CmEvent> response;
};

}  // namespace rocegw::cm
