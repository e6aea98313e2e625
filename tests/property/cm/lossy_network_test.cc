// SPDX-License-Identifier: Apache-2.0
// Two connection managers joined by a network that loses, duplicates, delays and reorders
// datagrams, in virtual time. Programs on both sides connect, accept, refuse, delay, disconnect and
// die at random. In every case both ends finally agree whether they are connected, every program
// gets a valid sequence of events, and after the programs end no ids, connections, ports or timers
// remain.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/support/random.h"
#include "tests/unit/cm/cm_host.h"

namespace rocegw::cm {
namespace {

using rocegw::testing::Random;
using testing::Host;
using testing::kProgram;
using testing::V4;

constexpr uint16_t kPort = 5000;

struct Weather {
  unsigned loss_percent = 0;
  unsigned repeat_percent = 0;
  int64_t longest_delay_ms = 1;
};

// State of one connection as one program knows it.
struct End {
  Host* host = nullptr;
  CmHandle id;
  bool active = false;
  bool established = false;  // as far as this program knows
  bool failed = false;       // REJECTED or UNREACHABLE
  bool disconnected = false;
  bool timewait_over = false;
  bool destroyed = false;
  bool Up() const { return established && !failed && !disconnected && !destroyed; }
};

// In every other world both ends are gateways.
CmConfig ConfigOf(uint64_t seed) {
  CmConfig config;
  config.discovery.enabled = seed % 2 == 1;
  return config;
}

class World {
 public:
  World(uint64_t seed, const Weather& weather)
      : random_(seed),
        weather_(weather),
        a_(V4(1), seed * 2 + 1, ConfigOf(seed)),
        b_(V4(2), seed * 2 + 2, ConfigOf(seed)) {
    GatewaySettings settings;
    settings.features = wire::kOptionChannel | wire::kOptionSelectiveAck | wire::kOptionCcStatic;
    settings.acceptors[0] = Qpn{0x44};
    a_.engine().SetGateway(settings);
    b_.engine().SetGateway(settings);
    listener_[0] = a_.Listening(kPort, 1000);
    listener_[1] = b_.Listening(kPort, 1000);
  }

  void Attempt() {
    const uint32_t qpn = next_qpn_++;
    Host& from = random_.Coin() ? a_ : b_;
    Host& to = &from == &a_ ? b_ : a_;
    From(from, [&] {
      End& end = actives_[qpn];
      end.host = &from;
      end.active = true;
      end.id = from.Routed(to.address, kPort);
      ids_[{&from, end.id}] = qpn;
      EXPECT_EQ(from.Do(end.id, Connect{Host::Params(qpn)}), 0);
    });
    if (random_.Below(10) == 0) Later(20000, [this, qpn] { Destroy(actives_[qpn]); });
  }

  void Run(Duration time) {
    const TimePoint end = now_ + time;
    while (true) {
      TimePoint next = Earlier(a_.engine().deadline(), b_.engine().deadline());
      if (!flying_.empty()) next = Earlier(next, flying_.begin()->first);
      if (!plans_.empty()) next = Earlier(next, plans_.begin()->first);
      if (next > end) break;
      now_ = std::max(now_, next);
      if (!plans_.empty() && plans_.begin()->first <= now_) {
        const auto plan = plans_.begin()->second;
        plans_.erase(plans_.begin());
        plan();
      } else if (!flying_.empty() && flying_.begin()->first <= now_) {
        const SendMad mad = flying_.begin()->second;
        flying_.erase(flying_.begin());
        Host& to = mad.path.destination == a_.address ? a_ : b_;
        From(to, [&] { to.Take(mad); });
      } else {
        From(a_, [&] { a_.engine().OnDeadline(now_, a_.actions); });
        From(b_, [&] { b_.engine().OnDeadline(now_, b_.actions); });
      }
    }
    now_ = end;
  }

  void ClearSky() { weather_ = {}; }

  // Checks that a connection is up at both ends or at none, unless one end was destroyed and the
  // message is in flight.
  void CheckAgreement() {
    for (auto& [qpn, active] : actives_) {
      const auto passive = passives_.find(qpn);
      const bool up = passive != passives_.end() && passive->second.Up();
      EXPECT_EQ(active.Up(), up) << "connection " << qpn
                                 << (active.destroyed ? ", active destroyed" : "")
                                 << (active.failed ? ", active failed" : "");
      both_up_ += active.Up() && up ? 1 : 0;
      if (!active.Up() || !up) continue;
      const uint32_t agreed = AgreedBy(*active.host, active.id);
      EXPECT_EQ(agreed, AgreedBy(*passive->second.host, passive->second.id)) << qpn;
      channels_ += agreed != 0 ? 1 : 0;
    }
  }

  void KillEverything() {
    plans_.clear();
    for (Host* host : {&a_, &b_})
      From(*host, [&] { host->engine().DropOwner(kProgram, now_, host->actions); });
  }

  void CheckNothingLeft() {
    EXPECT_TRUE(flying_.empty());
    for (const Host* host : {&a_, &b_}) {
      EXPECT_EQ(host->engine().id_count(), 0u);
      EXPECT_EQ(host->engine().connection_count(), 0u);
      EXPECT_EQ(host->engine().port_count(), 0u);
      EXPECT_EQ(host->engine().deadline(), kNever);
    }
  }

  int both_up() const { return both_up_; }
  int channels() const { return channels_; }
  int events() const { return events_; }

 private:
  static uint32_t AgreedBy(const Host& host, CmHandle id) {
    for (const ConnectionRow& row : host.engine().Connections()) {
      if (row.id == id) return row.ece.agreed;
    }
    return 0;
  }
  void Later(int64_t within_ms, std::function<void()> plan) {
    plans_.emplace(now_ + Milliseconds(static_cast<int64_t>(
                              random_.Below(static_cast<size_t>(within_ms) + 1))),
                   std::move(plan));
  }

  // Runs a step of a host, then performs the actions of its engine.
  template <typename Work>
  void From(Host& host, Work work) {
    host.now = now_;
    work();
    for (const SendMad& mad : std::exchange(host.actions.mads, {})) Fly(mad);
    for (const CmEvent& event : std::exchange(host.actions.events, {})) Hear(host, event);
    host.actions.Clear();
  }

  void Fly(const SendMad& mad) {
    const int copies = 1 + (random_.Below(100) < weather_.repeat_percent ? 1 : 0);
    for (int i = 0; i < copies; ++i) {
      if (random_.Below(100) < weather_.loss_percent) continue;
      const auto delay =
          static_cast<int64_t>(random_.Below(static_cast<size_t>(weather_.longest_delay_ms)));
      flying_.emplace(now_ + Milliseconds(delay) + Microseconds(10), mad);
    }
  }

  void Destroy(End& end) {
    if (end.destroyed) return;
    end.destroyed = true;
    From(*end.host, [&] { EXPECT_EQ(end.host->Do(end.id, DestroyId{}), 0); });
  }

  void Hear(Host& host, const CmEvent& event) {
    ++events_;
    if (event.type == EventType::kConnectRequest) {
      Requested(host, event);
      return;
    }
    const auto at = ids_.find({&host, event.id});
    ASSERT_NE(at, ids_.end()) << "event for an id nobody has";
    const uint32_t qpn = at->second;
    End& end = (event.id.value & kEngineHandleBit) != 0 ? passives_[qpn] : actives_[qpn];
    ASSERT_FALSE(end.destroyed) << "event after destruction";
    switch (event.type) {
      case EventType::kConnectResponse:
        ASSERT_TRUE(end.active && !end.established && !end.failed);
        Later(2000, [this, &end] { ReadyQp(end); });
        break;
      case EventType::kEstablished:
        ASSERT_TRUE(!end.active && !end.established && !end.failed && !end.disconnected);
        end.established = true;
        MaybeDisconnect(end);
        break;
      case EventType::kRejected:
      case EventType::kUnreachable:
        ASSERT_FALSE(end.failed || end.established || end.disconnected);
        end.failed = true;
        break;
      case EventType::kDisconnected:
        ASSERT_FALSE(end.disconnected || end.failed);
        end.disconnected = true;
        break;
      case EventType::kTimewaitExit:
        ASSERT_TRUE(end.disconnected && !end.timewait_over);
        end.timewait_over = true;
        break;
      default:
        FAIL() << "unexpected event " << static_cast<int>(event.type);
    }
  }

  void Requested(Host& host, const CmEvent& event) {
    const uint32_t qpn = event.param.qpn.value;
    if (passives_.contains(qpn)) {
      // Possible only if every one of many REJs was lost.
      ASSERT_GE(weather_.loss_percent, 50u) << "request " << qpn << " came twice";
      From(host, [&] { EXPECT_EQ(host.Do(event.id, DestroyId{}), 0); });
      return;
    }
    End& end = passives_[qpn];
    end.host = &host;
    end.id = event.id;
    ids_[{&host, event.id}] = qpn;
    From(host, [&] { host.Do(event.id, RequestFetched{}); });
    const size_t mood = random_.Below(100);
    if (mood < 3) return;  // never answers
    Later(3000, [this, &end, qpn, mood] {
      if (end.failed) return;
      From(*end.host, [&] {
        if (mood < 10) {
          end.destroyed = true;
          EXPECT_EQ(end.host->Do(end.id, DestroyId{}), 0);
        } else if (mood < 20) {
          end.failed = true;
          EXPECT_EQ(end.host->Do(end.id, Reject{}), 0);
        } else {
          EXPECT_EQ(end.host->Do(end.id, Accept{Host::Params(qpn + 100000)}), 0);
        }
      });
    });
  }

  void ReadyQp(End& end) {
    if (end.failed || end.disconnected || end.destroyed) return;
    if (random_.Below(20) == 0) {
      end.failed = true;
      From(*end.host, [&] { EXPECT_EQ(end.host->Do(end.id, Reject{}), 0); });
      return;
    }
    end.established = true;
    From(*end.host, [&] { EXPECT_EQ(end.host->Do(end.id, Establish{}), 0); });
    MaybeDisconnect(end);
  }

  void MaybeDisconnect(End& end) {
    const size_t mood = random_.Below(10);
    if (mood < 3) {
      Later(5000, [this, &end] {
        if (!end.destroyed)
          From(*end.host, [&] { EXPECT_EQ(end.host->Do(end.id, Disconnect{}), 0); });
      });
    } else if (mood < 5) {
      Later(5000, [this, &end] { Destroy(end); });
    }
  }

  Random random_;
  Weather weather_;
  Host a_, b_;
  CmHandle listener_[2];
  TimePoint now_{1000000000};
  std::multimap<TimePoint, SendMad> flying_;
  std::multimap<TimePoint, std::function<void()>> plans_;
  std::map<uint32_t, End> actives_, passives_;
  std::map<std::pair<const Host*, CmHandle>, uint32_t> ids_;
  uint32_t next_qpn_ = 0x100;
  int both_up_ = 0;
  int channels_ = 0;  // connections among these that use a channel
  int events_ = 0;
};

void RunSeeds(uint64_t first_seed, int seeds, const Weather& weather, bool agreement) {
  const uint64_t base = rocegw::testing::TestSeed(first_seed);
  int up = 0;
  int channels = 0;
  for (int i = 0; i < seeds; ++i) {
    const uint64_t seed = base + static_cast<uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, weather);
    for (int n = 0; n < 40; ++n) {
      world.Attempt();
      world.Run(Milliseconds(100));
    }
    world.Run(Seconds(150));
    world.ClearSky();
    world.Run(Seconds(250));
    if (agreement) world.CheckAgreement();
    world.KillEverything();
    world.Run(Seconds(120));
    world.CheckNothingLeft();
    up += world.both_up();
    channels += world.channels();
    EXPECT_GT(world.events(), 100);
    if (::testing::Test::HasFailure()) return;
  }
  if (agreement) {
    EXPECT_GT(channels, seeds) << "hardly any channel was agreed on";
    EXPECT_GT(up, seeds * 5) << "hardly any connection came up: the test tests nothing";
  }
}

TEST(LossyNetwork, FairWeather_BothEndsAgree) { RunSeeds(1000, 20, {0, 0, 1}, true); }

TEST(LossyNetwork, Reordering_BothEndsAgree) { RunSeeds(2000, 20, {0, 0, 400}, true); }

TEST(LossyNetwork, Repetition_BothEndsAgree) { RunSeeds(3000, 20, {0, 50, 400}, true); }

TEST(LossyNetwork, Loss_BothEndsAgree) { RunSeeds(4000, 30, {20, 0, 5}, true); }

TEST(LossyNetwork, LossRepetitionAndReordering_BothEndsAgree) {
  RunSeeds(5000, 30, {20, 20, 300}, true);
}

// Loss is so high that one side may give up while the other is connected, but no state may remain.
TEST(LossyNetwork, Storm_LeavesNothingBehind) { RunSeeds(6000, 20, {70, 20, 1000}, false); }

}  // namespace
}  // namespace rocegw::cm
