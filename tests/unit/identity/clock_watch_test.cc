// SPDX-License-Identifier: Apache-2.0
#include "controlplane/identity/clock_watch.h"

#include <gtest/gtest.h>

#include "controlplane/identity/certificate_authority.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::identity {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(ClockWatch, TellsStepsAndNoDrift) {
  ClockWatch watch;
  const TimePoint now = Now();
  const std::chrono::steady_clock::time_point steady;
  EXPECT_FALSE(watch.Look(now, steady).has_value()) << "the first look";
  EXPECT_FALSE(watch.Look(now + seconds(5), steady + seconds(5)).has_value());
  EXPECT_FALSE(watch.Look(now + hours(2) + seconds(9), steady + hours(2)).has_value());
  EXPECT_EQ(watch.Look(now + hours(50), steady + hours(3)), hours(47) - seconds(9));
  EXPECT_EQ(watch.Look(now + hours(4), steady + hours(4)), -hours(47));
  EXPECT_EQ(watch.steps(), 2u);
}

TEST(Certificate, IsDueAtHalfOfItsLife_AndWhenItIsOfTheFuture) {
  const rocegw::testing::ScratchDirectory directory;
  auto authority = CertificateAuthority::Open(directory.File(""), "rocegw");
  ASSERT_TRUE(authority.ok());
  EXPECT_LE((*authority)->not_before(), Now() - hours(24 * 365 * 9))
      << "for clocks that are behind";
  EXPECT_GE((*authority)->not_after(), Now() + hours(24 * 365 * 9));
  auto key = NewKey();
  auto issued = (*authority)->IssueNode(**key, "a", hours(24), NewSerial(Now()));
  auto facts = FactsOfPem(issued.value().pem);
  ASSERT_TRUE(facts.ok());
  EXPECT_LE(facts->not_before, Now() - hours(24 * 50));
  EXPECT_LE(facts->issued, Now());
  EXPECT_GE(facts->issued, Now() - seconds(60));
  EXPECT_FALSE(IsDueForRenewal(*facts, Now()));
  EXPECT_FALSE(IsDueForRenewal(*facts, Now() + hours(11)));
  EXPECT_TRUE(IsDueForRenewal(*facts, Now() + hours(12)));
  EXPECT_FALSE(IsDueForRenewal(*facts, Now() - seconds(200))) << "clocks differ";
  EXPECT_TRUE(IsDueForRenewal(*facts, Now() - hours(1)));
}

}  // namespace
}  // namespace rocegw::identity
