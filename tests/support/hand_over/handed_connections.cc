// SPDX-License-Identifier: Apache-2.0
#include "tests/support/hand_over/handed_connections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "gateway/cm/cm_engine.h"
#include "gateway/hand_over/state_stream.h"

namespace rocegw::testing {
namespace {

using hand_over::StateStream;

constexpr TimePoint kBegin{1'000'000'000};
constexpr SessionId kProgram{7};

class CountingRandom final : public cm::RandomSource {
 public:
  uint64_t Next() override {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ ^ state_ >> 29;
  }

 private:
  uint64_t state_ = 1;
};

wire::Gid Address(uint32_t last) { return wire::Gid::FromV4(0xC0000200u + last); }

// Engine of a gateway that looks for other gateways.
struct Node {
  explicit Node(uint32_t number) : address(Address(number)) {
    cm::CmConfig config;
    config.discovery.enabled = true;
    engine = std::make_unique<cm::CmEngine>(config, random);
    cm::GatewaySettings settings;
    settings.features = wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcStatic;
    settings.acceptors[0] = Qpn{2};
    engine->SetGateway(settings);
    cm::LocalAddress local;
    local.gid = address;
    engine->SetAddresses({&local, 1});
  }
  template <typename Body>
  void Do(uint64_t id, Body body) {
    EXPECT_EQ(engine->OnCommand({kProgram, {id}, std::move(body)}, kBegin, actions), 0);
  }
  void Route(uint64_t id, const wire::Gid& peer, uint16_t port) {
    Do(id, cm::CreateId{cm::PortSpace::kTcp, cm::QpType::kRc});
    cm::ResolveAddress resolve;
    resolve.destination = {peer, port};
    Do(id, resolve);
    cm::AddressResolved route;
    route.source = address;
    route.destination = peer;
    Do(id, route);
    Do(id, cm::ResolveRoute{});
  }
  void Connect(uint64_t id, const wire::Gid& peer, uint16_t port) {
    Route(id, peer, port);
    cm::Connect connect;
    connect.param.qpn = Qpn{0x100 + static_cast<uint32_t>(id)};
    Do(id, connect);
  }

  const wire::Gid address;
  CountingRandom random;
  std::unique_ptr<cm::CmEngine> engine;
  cm::CmActions actions;
};

// Delivers what both have sent, as often as told.
void Exchange(Node& a, Node& b, int rounds) {
  for (; rounds != 0; --rounds) {
    std::vector<cm::SendMad> mads = std::exchange(a.actions.mads, {});
    for (const cm::SendMad& mad : std::exchange(b.actions.mads, {})) mads.push_back(mad);
    for (const cm::SendMad& mad : mads) {
      wire::RxMeta meta;
      meta.source = mad.path.source;
      meta.destination = mad.path.destination;
      Node& to = mad.path.destination == a.address ? a : b;
      (void)to.engine->OnDatagram(mad.bytes, meta, kGsiQpn, kBegin, to.actions);
    }
  }
}

}  // namespace

// A listener with a request that its program has not fetched, a request that was sent, one that
// waits for discovery of a third gateway, one that came before its listener, and resolved ids.
std::vector<uint8_t> ExampleOfConnections() {
  Node own(1);
  Node peer(2);
  own.Do(1, cm::CreateId{cm::PortSpace::kTcp, cm::QpType::kRc});
  own.Do(1, cm::Bind{{wire::Gid::FromV4(0), 7471}});
  own.Do(1, cm::Listen{10});
  peer.Connect(1, own.address, 7471);
  peer.Connect(2, own.address, 7472);
  Exchange(own, peer, 4);
  own.Connect(2, peer.address, 7473);
  own.Connect(3, Address(3), 7471);
  own.Route(4, peer.address, 7475);
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  StateStream out(bytes, kBegin, versions);
  own.engine->HandOver(out, own.actions);
  EXPECT_TRUE(out.ok()) << out.failure();
  EXPECT_GE(own.engine->connection_count(), 3u);
  return bytes;
}

std::string RunConnections(std::span<const uint8_t> state) {
  Node own(1);
  Node peer(2);
  StateStream in(state, kBegin);
  own.engine->HandOver(in, own.actions);
  if (!in.ok()) return in.failure();
  if (!in.at_end()) return "state is longer than what was read";
  Exchange(own, peer, 4);
  for (uint64_t id = 1; id <= 4; ++id) {
    (void)own.engine->OnCommand({kProgram, {id}, cm::Disconnect{}}, kBegin, own.actions);
    (void)own.engine->OnCommand({kProgram, {id}, cm::DestroyId{}}, kBegin, own.actions);
  }
  own.engine->DropOwner(kProgram, kBegin, own.actions);
  TimePoint now = kBegin;
  for (int i = 0; i < 2000 && own.engine->deadline() != kNever; ++i) {
    now = std::max(now, own.engine->deadline());
    own.engine->OnDeadline(now, own.actions);
    own.actions.Clear();
  }
  return "";
}

}  // namespace rocegw::testing
