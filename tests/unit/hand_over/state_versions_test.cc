// SPDX-License-Identifier: Apache-2.0
#include "gateway/hand_over/state_versions.h"

#include <gtest/gtest.h>

#include "gateway/hand_over/state_stream.h"

namespace rocegw::hand_over {
namespace {

TEST(StateVersions, OfThisProgram_AreThoseOfTheList) {
  const StateVersions versions;
  for (const StateKindInfo& kind : kStateKinds) EXPECT_EQ(versions.Of(kind.kind), kind.version);
  EXPECT_EQ(versions.Unwritable(), nullptr);
}

TEST(StateVersions, KindThatTheReaderDoesNotKnow_IsNamed) {
  StateVersions versions;
  versions.Set(StateKind::kFlow, 0);
  EXPECT_STREQ(versions.Unwritable(), "Flow");
}

TEST(StateVersions, ThatTravel_ComeBack) {
  StateVersions written;
  written.Set(StateKind::kFlow, 9);
  std::vector<uint8_t> bytes;
  const StateVersions reader;
  StateStream out(bytes, {}, reader);
  written.HandOver(out);
  ASSERT_TRUE(out.ok());
  StateVersions read;
  StateStream in(bytes, {});
  read.HandOver(in);
  EXPECT_TRUE(in.ok() && in.at_end());
  EXPECT_EQ(read.Of(StateKind::kFlow), 9);
  EXPECT_EQ(read.Of(StateKind::kQueuePair), written.Of(StateKind::kQueuePair));
}

// A newer gateway has kinds that this program does not know: they are skipped.
TEST(StateVersions, UnknownKinds_AreSkipped) {
  std::vector<uint8_t> bytes;
  const StateVersions reader;
  StateStream out(bytes, {}, reader);
  {
    const StateRecord record(out, StateKind::kVersions);
    out.Count(2, 2);
    uint16_t unknown = 60'000, one = 1, flow = static_cast<uint16_t>(StateKind::kFlow), two = 2;
    out(unknown, one, flow, two);
  }
  StateVersions read;
  StateStream in(bytes, {});
  read.HandOver(in);
  EXPECT_TRUE(in.ok() && in.at_end()) << in.failure();
  EXPECT_EQ(read.Of(StateKind::kFlow), 2);
  EXPECT_EQ(read.Of(StateKind::kQueuePair), 0);
}

TEST(StateVersions, OfAProcessWithALimit_AreThoseOfAnOlderGateway) {
  std::vector<uint8_t> today;
  const StateVersions reader;
  StateStream out(today, {}, reader);
  { const StateRecord record(out, StateKind::kSession); }
  ASSERT_GT(reader.Of(StateKind::kSession), 1);
  LimitVersions([](const StateKindInfo& kind) { return kind.oldest; });
  const StateVersions older;
  EXPECT_EQ(older.Of(StateKind::kSession), 1);
  EXPECT_EQ(older.Unwritable(), nullptr);
  {
    StateStream in(today, {});
    { const StateRecord record(in, StateKind::kSession); }
    EXPECT_EQ(in.failure(), std::string("record of a newer version"));
    std::vector<uint8_t> bytes;
    StateStream written(bytes, {}, reader);
    const StateRecord record(written, StateKind::kSession);
    EXPECT_EQ(record.version(), 1);
  }
  LimitVersions(nullptr);
}

// The older of both versions is written, so that the other gateway reads it.
TEST(StateVersions, OfAnOlderReader_AreWritten) {
  StateVersions older;
  older.Set(StateKind::kFlow, 0);
  std::vector<uint8_t> bytes;
  StateStream out(bytes, {}, older);
  { const StateRecord record(out, StateKind::kFlow); }
  EXPECT_STREQ(out.failure(), "the reader's version of a record is too old");
  older.Set(StateKind::kFlow, 40);
  StateStream newer(bytes, {}, older);
  const StateRecord record(newer, StateKind::kFlow);
  EXPECT_EQ(record.version(), StateVersions().Of(StateKind::kFlow));
}

}  // namespace
}  // namespace rocegw::hand_over
