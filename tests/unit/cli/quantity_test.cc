// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/documents/quantity.h"

#include <gtest/gtest.h>

namespace rocegw::cli {
namespace {

TEST(Quantity_Parse, WhatPeopleWrite_IsTheNumber) {
  const struct {
    const char* text;
    Unit unit;
    uint64_t value;
  } kCases[] = {
      {"0", Unit::kCount, 0},
      {"5k", Unit::kCount, 5000},
      {"1.5k", Unit::kCount, 1500},
      {"2M", Unit::kCount, 2'000'000},
      {"4096", Unit::kBytes, 4096},
      {"16MiB", Unit::kBytes, 16u << 20},
      {"16Mi", Unit::kBytes, 16u << 20},
      {"1 GB", Unit::kBytes, 1'000'000'000},
      {"1PiB", Unit::kBytes, 1ULL << 50},
      {"10Gbps", Unit::kBytesPerSecond, 1'250'000'000},
      {"8bps", Unit::kBytesPerSecond, 1},
      {"500MB/s", Unit::kBytesPerSecond, 500'000'000},
      {"1000", Unit::kBytesPerSecond, 1000},
      {"5k/s", Unit::kPerSecond, 5000},
      {"0660", Unit::kMode, 0660},
      {"18446744073709551615", Unit::kCount, 0},  // too many digits
  };
  for (const auto& expected : kCases) {
    const auto value = ParseQuantity(expected.text, expected.unit);
    if (std::string_view(expected.text).size() > 19) {
      EXPECT_FALSE(value.has_value());
      continue;
    }
    ASSERT_TRUE(value.has_value()) << expected.text;
    EXPECT_EQ(*value, expected.value) << expected.text;
  }
}

TEST(Quantity_Parse, Nonsense_IsRefused) {
  for (const char* text : {"", "x", "5x", "-5", "5.", ".5", "1.2.3", "5 k k", "1.0001k", "16MiB"}) {
    EXPECT_FALSE(ParseQuantity(text, Unit::kCount).has_value()) << text;
  }
  EXPECT_FALSE(ParseQuantity("7bps", Unit::kBytesPerSecond).has_value());
  EXPECT_FALSE(ParseQuantity("0689", Unit::kMode).has_value());
  EXPECT_FALSE(ParseQuantity("9999999999999PiB", Unit::kBytes).has_value());
}

TEST(Quantity_Text, IsReadBackAsTheSame) {
  for (const Unit unit : {Unit::kCount, Unit::kBytes, Unit::kBytesPerSecond, Unit::kPerSecond}) {
    for (const uint64_t value :
         {0ULL, 1ULL, 7ULL, 1000ULL, 1024ULL, 1500ULL, 5000ULL, 1ULL << 20, 1ULL << 50,
          1'000'000'000ULL, 1'250'000'000ULL, 1'000'000'000'000ULL}) {
      const std::string text = QuantityText(value, unit);
      EXPECT_EQ(ParseQuantity(text, unit), value) << text;
    }
  }
  EXPECT_EQ(QuantityText(1'250'000'000, Unit::kBytesPerSecond), "10Gbps");
  EXPECT_EQ(QuantityText(16u << 20, Unit::kBytes), "16MiB");
  EXPECT_EQ(QuantityText(0660, Unit::kMode), "0660");
}

TEST(Duration_Parse, UnitsAddUp) {
  EXPECT_EQ(ParseDuration("5"), 5000);
  EXPECT_EQ(ParseDuration("250ms"), 250);
  EXPECT_EQ(ParseDuration("1h30m"), 5400000);
  EXPECT_EQ(ParseDuration("2d"), 172800000);
  for (const char* text : {"", "x", "5x", "h", "1h30", "-1s", "99999999999d"}) {
    EXPECT_EQ(ParseDuration(text).has_value(), std::string_view(text) == "1h30") << text;
  }
}

TEST(Duration_Parse, SecondsOfAnOption) {
  uint32_t seconds = 7;
  EXPECT_EQ(ReadSeconds("--soak", "x", seconds), "--soak: 'x' is not a duration (90s, 15m, 1h30m)");
  EXPECT_EQ(seconds, 7u);
  EXPECT_EQ(ReadSeconds("--soak", "1h30m", seconds), "");
  EXPECT_EQ(seconds, 5400u);
  EXPECT_EQ(ReadSeconds("--soak", "1500ms", seconds), "");
  EXPECT_EQ(seconds, 1u);
  EXPECT_EQ(ReadSeconds("--soak", "365d", seconds), "") << "more than 2^32 ms";
  EXPECT_EQ(seconds, 31536000u);
}

TEST(Quantity, AFieldThatIsCalledBytesHasTheUnitOfBytes) {
  // DonorQuota.bytes: quotas=[{tenant: tenants/blue, bytes: 4GiB}]
  EXPECT_EQ(UnitOfField("bytes"), Unit::kBytes);
  EXPECT_EQ(UnitOfField("tenant_bytes"), Unit::kBytes);
  EXPECT_EQ(UnitOfField("bytes_per_second"), Unit::kBytesPerSecond);
  EXPECT_EQ(UnitOfField("donors"), Unit::kCount);
}

}  // namespace
}  // namespace rocegw::cli
