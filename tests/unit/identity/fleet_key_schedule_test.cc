// SPDX-License-Identifier: Apache-2.0
// Keys of the fleet by time: two gateways that asked less than half a period apart understand each
// other, and no key is accepted two periods after a host got it.
#include "controlplane/identity/fleet_key_schedule.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "controlplane/identity/certificate_authority.h"
#include "controlplane/identity/openssl.h"
#include "gateway/disk/durable_file.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::identity {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using Keys = FleetKeySchedule::Keys;

constexpr seconds kPeriod = hours(24);
// In the middle of a period.
const TimePoint kNow = TimePoint(hours(24) * 20000) + hours(12);

bool Knows(const Keys& keys, const std::string& key) {
  return std::ranges::find(keys.keys, key) != keys.keys.end();
}
// With the key that the sender makes tags with.
bool Accepts(const Keys& receiver, const Keys& sender) {
  return Knows(receiver, sender.keys.at(0));
}

TEST(FleetKeySchedule, GatewaysThatAskedLessThanHalfAPeriodApart_AcceptEachOther) {
  const FleetKeySchedule schedule("secret", kPeriod);
  for (seconds begin{0}; begin < kPeriod; begin += hours(1)) {
    const Keys now = schedule.At(kNow + begin);
    for (seconds apart{0}; apart < kPeriod / 2; apart += hours(1)) {
      const Keys later = schedule.At(kNow + begin + apart);
      EXPECT_TRUE(Accepts(now, later)) << begin.count() << ", " << apart.count();
      EXPECT_TRUE(Accepts(later, now)) << begin.count() << ", " << apart.count();
    }
  }
}

// A host that is shut out may make tags with any key that it holds.
TEST(FleetKeySchedule, NoKey_IsAcceptedTwoPeriodsAfterAHostGotIt) {
  const FleetKeySchedule schedule("secret", kPeriod);
  for (seconds begin{0}; begin < kPeriod; begin += hours(1)) {
    for (const std::string& key : schedule.At(kNow + begin).keys) {
      for (seconds later = 2 * kPeriod; later < 5 * kPeriod; later += hours(1))
        EXPECT_FALSE(Knows(schedule.At(kNow + begin + later), key))
            << begin.count() << ", " << later.count();
    }
  }
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
  EXPECT_EQ(FleetKeySchedule("s", seconds(12)).At(kNow).refresh_after, seconds(1));
  EXPECT_EQ(FleetKeySchedule("s", hours(24 * 30)).At(kNow).refresh_after, seconds(60));
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

std::string PemOf(const EVP_PKEY& key, bool traditional) {
  const Bio bio(BIO_new(BIO_s_mem()));
  const int written = traditional ? PEM_write_bio_PrivateKey_traditional(
                                        bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr)
                                  : PEM_write_bio_PKCS8PrivateKey(bio.get(), &key, nullptr, nullptr,
                                                                  0, nullptr, nullptr);
  EXPECT_EQ(written, 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

TEST(FleetKeySchedule, Secrets_AreOfAuthoritiesWithKeysOfAllKinds) {
  const std::pair<const char*, Key> kinds[] = {{"RSA", Key(EVP_RSA_gen(2048))},
                                               {"P-384", Key(EVP_EC_gen("P-384"))},
                                               {"P-256", Key(EVP_EC_gen("P-256"))}};
  std::set<std::string> seen;
  for (const auto& [name, key] : kinds) {
    SCOPED_TRACE(name);
    ASSERT_NE(key, nullptr);
    std::set<std::string> of_this_key;
    for (const bool traditional : {false, true}) {
      rocegw::testing::ScratchDirectory directory;
      ASSERT_TRUE(WriteDurably(directory.File("ca.key"), PemOf(*key, traditional), 0600).ok());
      auto authority = CertificateAuthority::Open(directory.File(""), "example");
      ASSERT_TRUE(authority.ok()) << authority.status().text();
      auto secret = (*authority)->DerivedSecret("a");
      ASSERT_TRUE(secret.ok()) << secret.status().text();
      EXPECT_EQ(secret->size(), 32u);
      of_this_key.insert(*secret);
    }
    EXPECT_EQ(of_this_key.size(), 1u) << "the same key in two forms of a file";
    seen.merge(of_this_key);
  }
  EXPECT_EQ(seen.size(), std::size(kinds));
}

}  // namespace
}  // namespace rocegw::identity
