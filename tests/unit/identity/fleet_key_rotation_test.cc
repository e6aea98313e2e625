// SPDX-License-Identifier: Apache-2.0
// Rotations of the fleet's keys out of turn: gateways whose agents ask as they should understand
// each other throughout, and a host that was shut out knows no key that any of them accepts soon
// after.
#include "controlplane/identity/fleet_key_rotation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "controlplane/model/stored.h"
#include "tests/support/random.h"

namespace rocegw::identity {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Keys = FleetKeySchedule::Keys;

const TimePoint kNow = TimePoint(hours(24) * 20000) + hours(7);

bool Accepts(const Keys& receiver, const Keys& sender) {
  return std::ranges::find(receiver.keys, sender.keys.at(0)) != receiver.keys.end();
}

// Record of the store, and the time.
class Fleet {
 public:
  explicit Fleet(seconds period) : period_(period), schedule_("secret", period) {}

  KeyRotation Rotate() {
    KeyRotation rotation = PlanKeyRotation(record_, period_, now);
    if (!rotation.step.operations.empty()) {
      EXPECT_EQ(rotation.step.compares.at(0).revision, record_ ? record_->mod_revision : 0);
      if (!record_) record_.emplace();
      record_->value = rotation.step.operations.at(0).value;
      ++record_->mod_revision;
    }
    return rotation;
  }
  Keys Ask() const { return schedule_.At(now, StartsOfKeys(record_)); }
  size_t starts() const { return StartsOfKeys(record_).size(); }
  seconds step() const { return FleetKeySchedule::StepOf(period_); }

  TimePoint now = kNow;

 private:
  const seconds period_;
  const FleetKeySchedule schedule_;
  Found record_;
};

TEST(FleetKeyRotation, NewKeysAreAccepted_ThenUsed_ThenTheOnlyOnes) {
  Fleet fleet(hours(24));
  const Keys before = fleet.Ask();
  const KeyRotation rotation = fleet.Rotate();
  EXPECT_EQ(rotation.start, kNow);
  EXPECT_EQ(rotation.done, kNow + 2 * fleet.step());
  const Keys accepted = fleet.Ask();
  ASSERT_EQ(accepted.keys.size(), 3u);
  EXPECT_EQ(accepted.keys[0], before.keys[0]) << "makes tags until all have the new one";
  EXPECT_EQ(accepted.keys[1], before.keys[1]);
  fleet.now += fleet.step();
  const Keys used = fleet.Ask();
  EXPECT_EQ(used.keys.at(0), accepted.keys[2]);
  EXPECT_EQ(used.keys.at(1), before.keys[0]);
  fleet.now = rotation.done;
  const Keys after = fleet.Ask();
  EXPECT_EQ(after.keys.size(), 2u);
  EXPECT_EQ(after.keys.at(0), used.keys.at(0));
  for (const std::string& old : before.keys)
    EXPECT_EQ(std::ranges::find(after.keys, old), after.keys.end());
}

TEST(FleetKeyRotation, AgentsAskWhenTheKeysChange) {
  Fleet fleet(hours(24));
  EXPECT_EQ(fleet.Ask().refresh_after, seconds(60));
  fleet.Rotate();
  EXPECT_EQ(fleet.Ask().refresh_after, seconds(60));
  fleet.now += seconds(70) + milliseconds(1);
  EXPECT_EQ(fleet.Ask().refresh_after, seconds(20));
}

TEST(FleetKeyRotation, WhileOneIsInProgress_TheNextOneWaits_AndServesAll) {
  Fleet fleet(hours(24));
  const KeyRotation first = fleet.Rotate();
  fleet.now += seconds(1);
  const KeyRotation second = fleet.Rotate();
  EXPECT_EQ(second.start, first.done);
  for (int i = 0; i < 100; ++i) {
    fleet.now += milliseconds(100);
    const KeyRotation more = fleet.Rotate();
    EXPECT_TRUE(more.step.operations.empty());
    EXPECT_EQ(more.start, second.start);
  }
  // So close to its start, a transaction could come too late for it.
  fleet.now = second.start - seconds(1);
  EXPECT_EQ(fleet.Rotate().start, second.done);
  EXPECT_LE(fleet.starts(), 4u);
}

TEST(FleetKeyRotation, StartFarInTheFuture_DoesNotPreventARotation) {
  Fleet fleet(hours(24));
  fleet.now += hours(24 * 365);
  fleet.Rotate();
  fleet.now = kNow;
  EXPECT_EQ(fleet.Rotate().start, kNow);
  EXPECT_EQ(fleet.starts(), 1u);
}

TEST(FleetKeyRotation, DamagedRecord_IsNone) {
  store::Entry entry;
  entry.value = "\xff\xff";
  EXPECT_TRUE(StartsOfKeys(entry).empty());
}

// Agents that ask as they were told, up to a quarter of a step late, and rotations at random times.
TEST(FleetKeyRotation, GatewaysUnderstandEachOther_AndHostsThatWereShutOutKnowNothing) {
  rocegw::testing::Random random(rocegw::testing::TestSeed(1));
  const auto up_to = [&](milliseconds most) {
    return milliseconds(random.Below(static_cast<size_t>(most.count()) + 1));
  };
  struct Agent {
    Keys keys;
    TimePoint next;
  };
  struct ShutOut {
    std::set<std::string> keys;
    TimePoint until;
  };
  for (const seconds period : {seconds(12), seconds(30), seconds(480), seconds(hours(24))}) {
    Fleet fleet(period);
    fleet.now += up_to(period);
    const milliseconds step = fleet.step();
    std::vector<Agent> agents(5, {fleet.Ask(), fleet.now});
    std::set<std::string> known;  // keys of a host that is shut out at the next rotation
    std::vector<ShutOut> shut_out;
    for (int moment = 0; moment < 20000 && !::testing::Test::HasFailure(); ++moment) {
      fleet.now += milliseconds(1) + up_to(step / 20);
      const Keys answer = fleet.Ask();
      known.insert(answer.keys.begin(), answer.keys.end());
      for (Agent& agent : agents) {
        if (agent.next <= fleet.now)
          agent = {answer, fleet.now + answer.refresh_after + up_to(step / 4)};
      }
      for (const Agent& sender : agents) {
        for (const Agent& receiver : agents)
          EXPECT_TRUE(Accepts(receiver.keys, sender.keys)) << period.count() << ", " << moment;
      }
      if (random.Below(100) == 0) {
        const KeyRotation rotation = fleet.Rotate();
        // Agents ask within a second of the end, some of them late.
        shut_out.push_back({known, rotation.done + seconds(1) + step / 2});
        known.clear();
      }
      std::erase_if(shut_out, [&](const ShutOut& host) {
        if (host.until > fleet.now) return false;
        for (const Agent& agent : agents) {
          for (const std::string& key : agent.keys.keys)
            EXPECT_FALSE(host.keys.contains(key)) << period.count() << ", " << moment;
        }
        return true;
      });
    }
  }
}

}  // namespace
}  // namespace rocegw::identity
