// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/session/settings.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <functional>

namespace rocegw::far {
namespace {

constexpr rocegw_memory_donor kDonors[] = {{"a", nullptr}, {"b", "1234"}};

rocegw_memory_options Good() {
  rocegw_memory_options options = ROCEGW_MEMORY_DEFAULTS;
  options.donors = kDonors;
  options.donor_count = 2;
  options.size = 1;
  return options;
}

TEST(FarSettings, DefaultsAreGood) {
  const rocegw_memory_options options = Good();
  const auto settings = CheckOptions(options, sizeof options);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().slabs, 1u);
  EXPECT_EQ(settings.value().tenant, "default");
  EXPECT_EQ(settings.value().donors[0].port, "7475");
  EXPECT_EQ(settings.value().donors[1].port, "1234");
  EXPECT_TRUE(settings.value().merge.merge);
  EXPECT_TRUE(settings.value().chain);
  EXPECT_EQ(settings.value().StagingBytes(), uint64_t{8} << 20);
}

TEST(FarSettings, CallersThatKnowNoDiskCopyHaveNone) {
  rocegw_memory_options options = Good();
  options.disk_copy = "/copy";
  const auto older = CheckOptions(options, offsetof(rocegw_memory_options, disk_copy));
  ASSERT_TRUE(older.ok());
  EXPECT_EQ(older.value().disk_path, "");
  EXPECT_FALSE(CheckOptions(options, offsetof(rocegw_memory_options, disk_copy) - 1).ok());
}

TEST(FarSettings, DonorsOfTheFleet_AreNotNamed) {
  rocegw_memory_options options = Good();
  options.donors_dir = "/run/rocegw-donors";
  EXPECT_FALSE(CheckOptions(options, sizeof options).ok()) << "both";
  options.donors = nullptr;
  options.donor_count = 0;
  options.replicas = 3;
  const auto settings = CheckOptions(options, sizeof options);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().donors_dir, "/run/rocegw-donors");
  EXPECT_TRUE(settings.value().donors.empty());
  EXPECT_FALSE(CheckOptions(options, offsetof(rocegw_memory_options, donors_dir)).ok())
      << "a caller that does not know it";
}

TEST(FarSettings, QueueOfTheDiskCopyTakesTwoOfTheLargestOperations) {
  rocegw_memory_options options = Good();
  options.disk_copy = "/copy";
  options.disk_queue_bytes = 4096;
  const auto settings = CheckOptions(options, sizeof options);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings.value().disk_path, "/copy");
  EXPECT_EQ(settings.value().disk_queue_bytes, 2 * settings.value().merge.most_bytes);
}

TEST(FarSettings, WrongOnesAreNamed) {
  using Change = std::function<void(rocegw_memory_options&)>;
  const std::pair<const char*, Change> changes[] = {
      {"donor_count", [](auto& o) { o.donor_count = 0; }},
      {"replicas", [](auto& o) { o.replicas = 3; }},
      {"size", [](auto& o) { o.size = 0; }},
      {"slab_bytes", [](auto& o) { o.slab_bytes = 3 << 20; }},
      {"most_merged_bytes", [](auto& o) { o.most_merged_bytes = 5000; }},
      {"most_chained", [](auto& o) { o.most_chained = 65; }},
      {"polling", [](auto& o) { o.polling = 5; }},
      {"poll_completions", [](auto& o) { o.poll_completions = 0; }},
      {"timeout", [](auto& o) { o.timeout_ms = 0; }},
      {"tenant", [](auto& o) { o.tenant = "a-name-that-is-longer-than-31-characters"; }},
  };
  for (const auto& [name, change] : changes) {
    rocegw_memory_options options = Good();
    change(options);
    const auto settings = CheckOptions(options, sizeof options);
    ASSERT_FALSE(settings.ok()) << name;
    EXPECT_EQ(settings.status().error(), EINVAL);
    EXPECT_NE(settings.status().text().find(name), std::string::npos) << settings.status().text();
  }
}

TEST(Settings, PlacingEndsHoweverSlowlyDonorsAnswer) {
  rocegw_memory_options options = Good();
  options.size = uint64_t{16} << 30;
  options.slab_bytes = 64 << 10;
  options.connect_timeout_ms = 5000;
  const auto settings = CheckOptions(options, sizeof options);
  ASSERT_TRUE(settings.ok());
  // Two donors, and the leases: 5 seconds each, and a second for each GiB begun.
  EXPECT_EQ(settings.value().LongestPlacing(),
            std::chrono::seconds(15 + 16 * settings.value().replicas + 1));
}

TEST(Settings, DonorsWithoutADomainAreDomainsOfTheirOwn) {
  Settings settings;
  settings.donors = {{"a", "1", ""}, {"b", "1", "x"}, {"c", "1", ""}, {"d", "1", "x"}};
  EXPECT_EQ(settings.Domains(), (std::vector<uint32_t>{0, 1, 2, 1}));
}

}  // namespace
}  // namespace rocegw::far
