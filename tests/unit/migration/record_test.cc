// SPDX-License-Identifier: Apache-2.0
// Rows that the controller writes and reads back.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/unit/migration/controller_fixture.h"

namespace rocegw::migration {
namespace {

TEST_F(ControllerTest, RecordsAreReadBack) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kDrain);
  std::string problem;
  const auto rows = RowsOf(record_);
  EXPECT_EQ(TextOf(ReadRecord(plan_, RecordHeadJson(record_), rows, problem)), TextOf(record_));
  EXPECT_EQ(problem, "");
  for (const char* text : {"", "{}", "[1]", "{\"format\":2}"}) {
    (void)ReadRecord(plan_, text, rows, problem);
    EXPECT_NE(problem, "") << text;
  }
  for (const char* text : {"", "{}", "[1]", "[[]]", "[[1,2]]"}) {
    (void)ReadRecord(plan_, RecordHeadJson(record_), {text}, problem);
    EXPECT_NE(problem, "") << text;
  }
}

// A record that is damaged, or of another program, must not send a node through steps that its
// procedure does not have.
TEST_F(ControllerTest, ARecordThatTheControllerCannotHaveWrittenIsRefused) {
  BringTo(S::kRunning);
  Until(Canary(), Step::kDrain);
  const auto refusal = [this](const std::function<void(Record&)>& damage) {
    Record damaged = record_;
    damage(damaged);
    std::string problem;
    (void)ReadRecord(plan_, RecordHeadJson(damaged), RowsOf(damaged), problem);
    return problem;
  };
  const uint32_t n = Canary();
  EXPECT_EQ(refusal([](Record&) {}), "");
  EXPECT_NE(refusal([n](Record& r) { r.nodes[n].step = 77; }), "");
  EXPECT_NE(refusal([n](Record& r) { r.nodes[n].furthest = 77; }), "");
  EXPECT_NE(refusal([n](Record& r) { r.nodes[n].activity = Activity::kUndo; }), "");
  EXPECT_NE(refusal([n](Record& r) { r.nodes[n].activity = Activity::kNone; }), "");
  EXPECT_NE(refusal([n](Record& r) { r.nodes[n].activity = Activity::kRemoveOld; }), "");
  EXPECT_NE(refusal([n](Record& r) { r.nodes[n].pending->id = r.next_command; }), "");
  EXPECT_NE(refusal([n](Record& r) { r.nodes[n].pending->step = Step::kRestore; }), "");
  EXPECT_NE(refusal([](Record& r) { r.nodes.pop_back(); }), "");
  EXPECT_NE(refusal([](Record& r) { r.waves.pop_back(); }), "");
  EXPECT_NE(refusal([](Record& r) { r.wave = 9; }), "");
  EXPECT_NE(refusal([](Record& r) { r.plan_hash = "sha256:0"; }), "");
}

}  // namespace
}  // namespace rocegw::migration
