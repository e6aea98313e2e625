// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/debug_views.h"

#include <gtest/gtest.h>

#include "controlplane/cli/whole_blocks.h"

namespace rocegw::cli {
namespace {

using gateway::v1::ExplainResponse;
using gateway::v1::Finding;

Finding& Add(ExplainResponse& response, const std::string& reason, uint64_t count) {
  Finding& finding = *response.add_findings();
  finding.set_kind(gateway::v1::PACKETS_DROPPED);
  finding.set_object("gateways/a");
  finding.set_reason(reason);
  finding.set_count(count);
  return finding;
}

TEST(Between, KeepsWhatMovedAndWhatStands) {
  ExplainResponse earlier;
  Add(earlier, "bad_icrc", 10);
  Add(earlier, "unknown_qpn", 5);
  ExplainResponse later;
  Add(later, "bad_icrc", 10);
  Add(later, "unknown_qpn", 8);
  Add(later, "bad_pad", 2);
  Add(later, "DRAINING", 0).set_kind(gateway::v1::TAKES_NOTHING_NEW);
  const ExplainResponse moved = Between(earlier, later);
  ASSERT_EQ(moved.findings_size(), 3);
  EXPECT_EQ(moved.findings(0).reason(), "unknown_qpn");
  EXPECT_EQ(moved.findings(0).count(), 3u);
  EXPECT_EQ(moved.findings(1).count(), 2u);
  EXPECT_EQ(moved.findings(2).reason(), "DRAINING");
}

TEST(Between, CountsOfANewLife_AreTakenWhole) {
  ExplainResponse earlier;
  Add(earlier, "bad_icrc", 10);
  ExplainResponse later;
  Add(later, "bad_icrc", 4);
  ASSERT_EQ(Between(earlier, later).findings_size(), 1);
  EXPECT_EQ(Between(earlier, later).findings(0).count(), 4u);
}

TEST(ExplanationView, WrapsSentencesAt80) {
  ExplainResponse response;
  Add(response, "bad_icrc", 1).set_message(std::string(50, 'x') + " " + std::string(40, 'y'));
  EXPECT_EQ(ExplanationView(response, 0), "Packets that were dropped\n  a  bad_icrc, 1 time\n    " +
                                              std::string(50, 'x') + "\n    " +
                                              std::string(40, 'y') + "\n");
}

std::string Block(size_t length) {
  std::string block(length, 'b');
  const auto size = static_cast<uint32_t>(length);
  std::memcpy(block.data() + 4, &size, sizeof size);
  return block;
}

TEST(WholeBlocks, GivesWhatIsComplete) {
  const std::string all = Block(28) + Block(32) + Block(16);
  // Cut at every position.
  for (size_t cut = 0; cut <= all.size(); ++cut) {
    WholeBlocks blocks;
    const std::string first(blocks.Add(std::string_view(all).substr(0, cut)));
    EXPECT_TRUE(first.empty() || first.size() == 28 || first.size() == 60 || first.size() == 76);
    EXPECT_LE(first.size(), cut);
    const std::string second(blocks.Add(std::string_view(all).substr(cut)));
    EXPECT_EQ(first + second, all);
    EXPECT_TRUE(blocks.complete());
  }
}

TEST(WholeBlocks, CountsPacketsThatWereGiven) {
  std::string packet = Block(32);
  const uint32_t enhanced = 6;
  std::memcpy(packet.data(), &enhanced, sizeof enhanced);
  WholeBlocks blocks;
  (void)blocks.Add(Block(28) + packet + packet + packet.substr(0, 20));
  EXPECT_EQ(blocks.packets(), 2u);
  (void)blocks.Add(packet.substr(20));
  EXPECT_EQ(blocks.packets(), 3u);
}

}  // namespace
}  // namespace rocegw::cli
