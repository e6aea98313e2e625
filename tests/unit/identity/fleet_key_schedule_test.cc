// SPDX-License-Identifier: Apache-2.0
// Keys of the fleet by time: two gateways that asked less than a period apart understand each
// other, and later ones do not.
#include "controlplane/identity/fleet_key_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "controlplane/identity/certificate_authority.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::identity {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using Keys = FleetKeySchedule::Keys;

constexpr seconds kPeriod = hours(24);
// In the middle of a period.
const TimePoint kNow = TimePoint(hours(24) * 20000) + hours(12);

bool Accepts(const Keys& receiver, const Keys& sender) {
  return std::ranges::find(receiver.keys, sender.keys.at(0)) != receiver.keys.end();
}

TEST(FleetKeySchedule, GatewaysThatAskedLessThanAPeriodApart_AcceptEachOther) {
  const FleetKeySchedule schedule("secret", kPeriod);
  const Keys now = schedule.At(kNow);
  for (seconds apart{0}; apart < kPeriod; apart += hours(1)) {
    const Keys later = schedule.At(kNow + apart);
    EXPECT_TRUE(Accepts(now, later)) << apart.count();
    EXPECT_TRUE(Accepts(later, now)) << apart.count();
  }
  const Keys much_later = schedule.At(kNow + 2 * kPeriod);
  EXPECT_FALSE(Accepts(now, much_later));
  EXPECT_FALSE(Accepts(much_later, now)) << "a key is worthless after two periods";
}

TEST(FleetKeySchedule, Keys_AreAllDifferent_AndOfOneSecret) {
  const FleetKeySchedule schedule("secret", kPeriod);
  std::set<std::string> seen;
  for (int day = 0; day < 300; day += 3) {
    for (const std::string& key : schedule.At(kNow + day * kPeriod).keys) {
      EXPECT_EQ(key.size(), FleetKeySchedule::kKeyLength);
      EXPECT_TRUE(seen.insert(key).second);
    }
  }
  EXPECT_EQ(schedule.At(kNow).keys, FleetKeySchedule("secret", kPeriod).At(kNow).keys)
      << "another controller of the fleet gives the same";
  for (const std::string& key : FleetKeySchedule("secret2", kPeriod).At(kNow).keys)
    EXPECT_FALSE(seen.contains(key));
}

TEST(FleetKeySchedule, Agents_AskSeveralTimesInAPeriod) {
  EXPECT_EQ(FleetKeySchedule("s", seconds(8)).At(kNow).refresh_after, seconds(1));
  EXPECT_EQ(FleetKeySchedule("s", hours(24 * 30)).At(kNow).refresh_after, hours(1));
}

TEST(FleetKeySchedule, Secrets_AreOfTheAuthorityAndThePurpose) {
  rocegw::testing::ScratchDirectory one;
  rocegw::testing::ScratchDirectory other;
  const auto first = std::move(*CertificateAuthority::Open(one.File(""), "example"));
  const auto again = std::move(*CertificateAuthority::Open(one.File(""), "example"));
  const auto second = std::move(*CertificateAuthority::Open(other.File(""), "example"));
  const std::string secret = first->DerivedSecret("a").value();
  EXPECT_EQ(secret.size(), 32u);
  EXPECT_EQ(again->DerivedSecret("a").value(), secret) << "after a restart";
  EXPECT_NE(first->DerivedSecret("b").value(), secret);
  EXPECT_NE(second->DerivedSecret("a").value(), secret);
}

}  // namespace
}  // namespace rocegw::identity
