// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/naming/donor_name.h"

#include <gtest/gtest.h>

namespace rocegw::far {
namespace {

void ExpectDonor(const char* text, const char* host, const char* port) {
  const auto donor = ReadDonor(text);
  ASSERT_TRUE(donor.ok()) << text;
  EXPECT_EQ(donor.value().host, host);
  EXPECT_EQ(donor.value().port, port);
}

TEST(ReadDonor, TakesHostsAndAddressesWithAndWithoutPort) {
  ExpectDonor("host", "host", "");
  ExpectDonor("host:7475", "host", "7475");
  ExpectDonor("10.77.0.2:1", "10.77.0.2", "1");
  ExpectDonor("fd77::2", "fd77::2", "");
  ExpectDonor("[fd77::2]", "fd77::2", "");
  ExpectDonor("[fd77::2]:7475", "fd77::2", "7475");
}

TEST(ReadDonor, RefusesWhatIsNeither) {
  for (const char* text : {"", ":7475", "host:", "host:name", "[fd77::2", "[fd77::2]7475", "[]"}) {
    EXPECT_FALSE(ReadDonor(text).ok()) << text;
  }
}

TEST(DonorList, NamesTheDonorsInTheirOrder) {
  auto read = DonorList::Read({"10.77.0.2", "[fd77::2]:80"});
  ASSERT_TRUE(read.ok());
  const DonorList list = std::move(read.value());
  rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  list.NameIn(options);
  ASSERT_EQ(options.donor_count, 2u);
  EXPECT_STREQ(options.donors[0].host, "10.77.0.2");
  EXPECT_EQ(options.donors[0].port, nullptr);
  EXPECT_STREQ(options.donors[1].host, "fd77::2");
  EXPECT_STREQ(options.donors[1].port, "80");
}

TEST(DonorList, RefusesOneBadName) { EXPECT_FALSE(DonorList::Read({"good", ":1"}).ok()); }

}  // namespace
}  // namespace rocegw::far
