// SPDX-License-Identifier: Apache-2.0
// Connection manager engine with an address, a clock that the test moves, and its actions so far.
// Each step of a program (bind, resolve, connect, ...) is one call. Assertions here only catch
// broken tests. With ROCEGW_HAND_OVER in the environment, the engine is handed over to a fresh one
// before each event, as if another gateway took over.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/cm/cm_engine.h"
#include "gateway/hand_over/state_stream.h"
#include "tests/support/random.h"

namespace rocegw::cm::testing {

class SeededRandom : public RandomSource {
 public:
  explicit SeededRandom(uint64_t seed) : random_(seed) {}
  uint64_t Next() override { return random_.Bits(); }

 private:
  rocegw::testing::Random random_;
};

inline wire::Gid V4(uint32_t last) { return wire::Gid::FromV4(0xC0000200u + last); }
inline Endpoint AnyV4(uint16_t port) { return {wire::Gid::FromV4(0), port}; }

inline PrivateData Text(std::string_view text) {
  return PrivateData::From(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}
inline std::string_view TextOf(const PrivateData& data) {
  const std::string_view all(reinterpret_cast<const char*>(data.bytes.data()), data.length);
  return all.substr(0, all.find('\0'));
}

inline constexpr uint16_t kPort = 7471;
inline constexpr SessionId kProgram{7};
inline constexpr SessionId kOtherProgram{8};

class Host {
 public:
  Host(const wire::Gid& gid, uint64_t seed, const CmConfig& config = {})
      : address(gid),
        random_(seed),
        config_(config),
        engine_(std::make_unique<CmEngine>(config, random_)) {
    SetMtu(1500);
  }

  CmEngine& engine() { return *engine_; }
  const CmEngine& engine() const { return *engine_; }

  void SetAddresses(std::span<const LocalAddress> addresses) {
    addresses_.assign(addresses.begin(), addresses.end());
    engine_->SetAddresses(addresses_);
  }
  void SetGateway(const GatewaySettings& settings) {
    settings_ = settings;
    engine_->SetGateway(settings);
  }

  void SetPoolOf(std::function<uint64_t(SessionId)> pool_of) {
    pool_of_ = std::move(pool_of);
    engine_->SetPoolOf(pool_of_);
  }

  // Writes the state of the engine and reads it into a fresh one, which takes its place.
  void HandOver() {
    using hand_over::StateStream;
    std::vector<uint8_t> bytes;
    const hand_over::StateVersions versions;
    StateStream out(bytes, now, versions);
    CmActions ignored;
    engine_->HandOver(out, ignored);
    ASSERT_TRUE(out.ok()) << out.failure();
    auto fresh = std::make_unique<CmEngine>(config_, random_);
    fresh->SetAddresses(addresses_);
    if (settings_.has_value()) fresh->SetGateway(*settings_);
    if (pool_of_) fresh->SetPoolOf(pool_of_);
    StateStream in(bytes, now);
    fresh->HandOver(in, ignored);
    ASSERT_TRUE(in.ok()) << in.failure();
    ASSERT_TRUE(in.at_end());
    engine_ = std::move(fresh);
  }

  void SetMtu(uint32_t mtu) {
    LocalAddress local;
    local.gid = address;
    local.device = 0;
    local.gid_index = 3;
    local.mtu = mtu;
    SetAddresses({&local, 1});
  }

  template <typename Body>
  int Do(CmHandle id, Body body, SessionId owner = kProgram) {
    HandOverIfAsked();
    return engine_->OnCommand({owner, id, std::move(body)}, now, actions);
  }

  CmHandle Create(PortSpace space = PortSpace::kTcp, QpType type = QpType::kRc,
                  SessionId owner = kProgram) {
    const CmHandle id{++last_handle_};
    return Do(id, CreateId{space, type}, owner) == 0 ? id : CmHandle{};
  }

  CmHandle Listening(uint16_t port, uint32_t backlog = 10, PortSpace space = PortSpace::kTcp,
                     QpType type = QpType::kRc) {
    const CmHandle id = Create(space, type);
    if (Do(id, Bind{AnyV4(port)}) != 0 || Do(id, Listen{backlog}) != 0) return {};
    return id;
  }

  // Returns an id with a route to the peer; its earlier events are dropped.
  CmHandle Routed(const wire::Gid& peer, uint16_t port, PortSpace space = PortSpace::kTcp,
                  QpType type = QpType::kRc) {
    const CmHandle id = Create(space, type);
    ResolveAddress resolve;
    resolve.destination = {peer, port};
    AddressResolved route;
    route.source = address;
    route.destination = peer;
    if (Do(id, resolve) != 0 || Do(id, route) != 0 || Do(id, ResolveRoute{}) != 0) return {};
    actions.events.clear();
    return id;
  }

  static ConnectParams Params(uint32_t qpn, std::string_view text = "") {
    ConnectParams param;
    param.qpn = Qpn{qpn};
    param.responder_resources = 4;
    param.initiator_depth = 2;
    param.retry_count = 7;
    param.rnr_retry_count = 6;
    param.private_data = Text(text);
    return param;
  }

  metrics::DropReason Take(const SendMad& mad) {
    wire::RxMeta meta;
    meta.source = mad.path.source;
    meta.destination = mad.path.destination;
    meta.source_port = mad.path.source_port;
    meta.traffic_class = mad.path.traffic_class;
    HandOverIfAsked();
    return engine_->OnDatagram(mad.bytes, meta, kGsiQpn, now, actions);
  }

  // Delivers a datagram from `peer`, as from the network.
  metrics::DropReason Take(const wire::CmMad& mad, const wire::Gid& peer) {
    wire::RxMeta meta;
    meta.source = peer;
    meta.destination = address;
    HandOverIfAsked();
    return engine_->OnMad(mad, meta, kGsiQpn, now, actions);
  }

  void Advance(Duration by) {
    now = now + by;
    HandOverIfAsked();
    engine_->OnDeadline(now, actions);
  }

  // Returns the oldest unread event.
  std::optional<CmEvent> NextEvent() {
    if (actions.events.empty()) return std::nullopt;
    CmEvent event = actions.events.front();
    actions.events.erase(actions.events.begin());
    return event;
  }

  // Returns the oldest unread datagram, decoded.
  std::optional<wire::CmMad> NextMad() {
    if (actions.mads.empty()) return std::nullopt;
    wire::CmMad mad;
    const metrics::DropReason reason = wire::DecodeMad(actions.mads.front().bytes, mad);
    actions.mads.erase(actions.mads.begin());
    return reason == metrics::DropReason::kNone ? std::optional(mad) : std::nullopt;
  }
  template <typename Message>
  std::optional<Message> Next() {
    const std::optional<wire::CmMad> mad = NextMad();
    if (!mad.has_value() || !std::holds_alternative<Message>(mad->body)) return std::nullopt;
    return *std::get_if<Message>(&mad->body);
  }

  // Returns the state as the state service shows it; "" if the engine has no such connection.
  std::string_view StateOf(CmHandle id) const {
    for (const ConnectionRow& row : engine_->Connections()) {
      if (row.id == id) return row.state;
    }
    return "";
  }

  const wire::Gid address;
  TimePoint now{1000000000};
  CmActions actions;

 private:
  void HandOverIfAsked() {
    static const bool asked = std::getenv("ROCEGW_HAND_OVER") != nullptr;
    if (asked) HandOver();
  }

  SeededRandom random_;
  const CmConfig config_;
  std::vector<LocalAddress> addresses_;
  std::optional<GatewaySettings> settings_;
  std::function<uint64_t(SessionId)> pool_of_;
  uint64_t last_handle_ = 0;
  std::unique_ptr<CmEngine> engine_;
};

// Delivers datagrams between the two until neither has any, without loss.
inline void Exchange(Host& a, Host& b) {
  while (!a.actions.mads.empty() || !b.actions.mads.empty()) {
    std::vector<SendMad> mads = std::exchange(a.actions.mads, {});
    for (SendMad& mad : std::exchange(b.actions.mads, {})) mads.push_back(mad);
    for (const SendMad& mad : mads) (mad.path.destination == a.address ? a : b).Take(mad);
  }
}

}  // namespace rocegw::cm::testing
