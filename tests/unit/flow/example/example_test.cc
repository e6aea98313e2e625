// SPDX-License-Identifier: Apache-2.0
// Example of docs/develop/congestion_control.md: one file and one line in algorithms.def add an
// algorithm. This program is built with that line; the documentation shows that file.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "gateway/flow/flow.h"

namespace rocegw::flow {
namespace {

constexpr uint32_t kMtu = 1000;

std::string Text(const std::string& path) {
  std::ifstream file(std::string(ROCEGW_SOURCE_DIR) + "/" + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CongestionExample, IsKnownByItsName) {
  EXPECT_EQ(FindCcKind("reno"), CcKind::kReno);
  EXPECT_EQ(AlgorithmOf(CcKind::kReno).parameters.size(), 2u);
  CcProfile profile;
  EXPECT_TRUE(profile.Set(CcKind::kReno, "decrease", 30));
  EXPECT_FALSE(profile.Set(CcKind::kReno, "decrease", 0));
}

TEST(CongestionExample, FlowUsesIt) {
  Flow flow;
  TimePoint now{1'000'000'000};
  flow.Start({.cc = {.kind = CcKind::kReno, .packet_bytes = kMtu}}, Psn(0), now);
  EXPECT_TRUE(flow.uses_marks());
  EXPECT_EQ(flow.cc_window(), 10u * kMtu);
  for (int i = 0; i < 10; ++i) flow.OnSent(1, kMtu, now);
  EXPECT_FALSE(flow.MaySend(kMtu, now));
  now = now + Microseconds(100);
  flow.OnAcked(Psn(10), kMtu, now);
  EXPECT_EQ(flow.cc_window(), 11u * kMtu);
  flow.OnSent(1, kMtu, now);
  flow.OnLoss(now);
  EXPECT_EQ(flow.cc_window(), 5500u);
  flow.SwitchCc({.kind = CcKind::kStatic}, now);
  flow.SwitchCc({.kind = CcKind::kReno, .packet_bytes = kMtu}, now);
  EXPECT_EQ(flow.cc_window(), 256u << 10);
}

TEST(CongestionExample, DocumentationShowsTheFile) {
  std::string code = Text("tests/unit/flow/example/reno.cc");
  ASSERT_FALSE(code.empty());
  EXPECT_NE(Text("docs/develop/congestion_control.md").find(code), std::string::npos)
      << "docs/develop/congestion_control.md and tests/unit/flow/example/reno.cc differ";
}

TEST(CongestionDocumentation, NamesEveryParameter) {
  const std::string text = Text("docs/develop/congestion_control.md");
  for (size_t i = 0; i < kCcKinds; ++i) {
    const auto kind = static_cast<CcKind>(i);
    if (kind == CcKind::kReno) continue;
    for (const CcParameter& parameter : AlgorithmOf(kind).parameters) {
      const std::string unit = *parameter.unit == 0 ? "" : std::string(" ") + parameter.unit;
      const std::string row = std::string("| `") + parameter.name + "` | " +
                              std::to_string(parameter.preset) + unit + " | " +
                              std::to_string(parameter.least) + " to " +
                              std::to_string(parameter.most) + " | " + parameter.meaning + " |";
      EXPECT_NE(text.find(row), std::string::npos) << row;
    }
  }
}

}  // namespace
}  // namespace rocegw::flow
