// SPDX-License-Identifier: Apache-2.0
// Amounts of Kubernetes.
#include "agent/kube/dra/quantity.h"

#include <gtest/gtest.h>

#include <utility>

namespace rocegw::agent {
namespace {

TEST(Quantity, FormsOfKubernetes_AreRead) {
  const std::pair<const char*, uint64_t> amounts[] = {
      {"0", 0},
      {"64", 64},
      {"+64", 64},
      {"1k", 1000},
      {"5G", 5'000'000'000},
      {"1.5Gi", uint64_t{3} << 29},
      {"2e9", 2'000'000'000},
      {"2E3", 2000},
      {"1E", 1'000'000'000'000'000'000},
      {"1Ki", 1024},
      {"1500m", 2},
      {"1m", 1},
      {"3000m", 3},
      {"0.1G", 100'000'000},
      {"1n", 1},
      {".5k", 500},
      {"9223372036854775807", 9223372036854775807u},
      {"0.1", 1},
      {"4Ti", uint64_t{4} << 40},
  };
  for (const auto& [text, amount] : amounts) EXPECT_EQ(ParseQuantity(text), amount) << text;
}

TEST(Quantity, OtherTexts_AreNone) {
  for (const char* text : {"", "+", "-1", "k", "1K", "1ki", "1kk", "1 k", " 1", "1x", "inf", "nan",
                           "0x10", "1e", "9223372036854775808", "12E", "1e400", "1mi", "."})
    EXPECT_EQ(ParseQuantity(text), std::nullopt) << text;
}

}  // namespace
}  // namespace rocegw::agent
