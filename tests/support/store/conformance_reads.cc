// SPDX-License-Identifier: Apache-2.0
// Reads: ranges, pages, old revisions, compacted revisions.
#include <algorithm>

#include "tests/support/store/conformance.h"

namespace rocegw::testing {
namespace {

using store::KeyRange;
using store::Operation;
using store::RangeRequest;

std::vector<std::string> Keys(const store::RangeResult& result) {
  std::vector<std::string> keys;
  for (const auto& entry : result.entries) keys.push_back(entry.key);
  return keys;
}

using Strings = std::vector<std::string>;

TEST_P(StoreConformance, Range_Prefix_IsOrderedAndExact) {
  Must({{},
        {Operation::Put("p/b", "2"), Operation::Put("p/a", "1"), Operation::Put("p", "x"),
         Operation::Put("p0", "x"), Operation::Put("p/\xff\xff", "3"), Operation::Put("o", "x")},
        {}});
  EXPECT_EQ(Keys(List("p/")), (Strings{"p/a", "p/b", "p/\xff\xff"}));
  EXPECT_EQ(Keys(List("p/\xff")), (Strings{"p/\xff\xff"}));
  EXPECT_EQ(Keys(List("nothing")), Strings{});
  EXPECT_EQ(List("").entries.size(), 6u);
}

TEST_P(StoreConformance, Range_PrefixOfHighBytes_ReachesTheEnd) {
  Put("\xff\xff", "1");
  Put("\xff\xff\xff", "2");
  Put("\xfe", "3");
  EXPECT_EQ(Keys(List("\xff\xff")), (Strings{"\xff\xff", "\xff\xff\xff"}));
}

TEST_P(StoreConformance, Range_OneKey_IsThatKey) {
  Put("a", "1");
  Put("ab", "2");
  Put(std::string("a\0", 2), "3");
  auto result = store().Range({KeyRange::Key("a")});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(Keys(*result), Strings{"a"});
}

TEST_P(StoreConformance, Range_InPages_IsOneStateWhateverIsWritten) {
  for (int i = 0; i < 10; ++i) Put("p/" + std::to_string(i), "old");
  Strings keys;
  RangeRequest request{KeyRange::Prefix("p/"), 0, 4};
  while (true) {
    auto page = store().Range(request);
    ASSERT_TRUE(page.ok()) << page.status().text();
    for (const auto& entry : page->entries) {
      keys.push_back(entry.key);
      EXPECT_EQ(entry.value, "old");
    }
    if (!page->more) break;
    ASSERT_EQ(page->entries.size(), 4u);
    request.revision = page->revision;
    request.range = request.range.After(page->entries.back().key);
    Put("p/8", "new");
    Put("p/55", "new");
    Delete("p/9");
  }
  EXPECT_EQ(keys.size(), 10u);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

TEST_P(StoreConformance, Range_ExactlyTheLimit_HasNoMore) {
  Put("p/1", "");
  Put("p/2", "");
  EXPECT_FALSE(List("p/", 0, 2).more);
  EXPECT_TRUE(List("p/", 0, 1).more);
}

TEST_P(StoreConformance, Range_AtARevision_IsThatState) {
  const Revision first = Put("a", "1");
  const Revision second = Put("b", "1");
  const Revision third =
      Must({{}, {Operation::Put("a", "2"), Operation::Delete("b")}, {}}).revision;
  EXPECT_EQ(Keys(List("", first)), Strings{"a"});
  const auto then = List("", second);
  EXPECT_EQ(Keys(then), (Strings{"a", "b"}));
  EXPECT_EQ(then.entries[0].value, "1");
  EXPECT_EQ(then.entries[0].mod_revision, first);
  EXPECT_EQ(then.revision, second);
  const auto now = List("", third);
  EXPECT_EQ(Keys(now), Strings{"a"});
  EXPECT_EQ(now.entries[0].value, "2");
  EXPECT_EQ(now.entries[0].create_revision, first);
}

TEST_P(StoreConformance, Range_KeysOnly_LeavesValuesOut) {
  const Revision revision = Put("a", "value");
  RangeRequest request{KeyRange::All()};
  request.keys_only = true;
  auto result = store().Range(request);
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->entries.size(), 1u);
  EXPECT_EQ(result->entries[0].value, "");
  EXPECT_EQ(result->entries[0].mod_revision, revision);
}

TEST_P(StoreConformance, Range_InTheFuture_IsAnError) {
  const Revision newest = Put("a", "1");
  const auto result = store().Range({KeyRange::All(), newest + 1});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().error(), store::kFutureRevision);
}

TEST_P(StoreConformance, Compact_PastIsGone_PresentIsNot) {
  const Revision first = Put("a", "1");
  const Revision second = Put("a", "2");
  Put("deleted", "x");
  const Revision deleted = Delete("deleted");
  const Revision newest = Put("a", "3");
  ASSERT_TRUE(store().Compact(deleted).ok());

  const auto gone = store().Range({KeyRange::All(), second});
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.status().error(), store::kCompacted);
  const auto at = List("", deleted);
  EXPECT_EQ(Keys(at), Strings{"a"});
  EXPECT_EQ(at.entries[0].value, "2");
  const auto now = List("");
  EXPECT_EQ(now.revision, newest);
  EXPECT_EQ(now.entries[0].value, "3");
  EXPECT_EQ(now.entries[0].create_revision, first);
}

TEST_P(StoreConformance, Compact_TwiceOrLower_IsDoneAlready) {
  const Revision first = Put("a", "1");
  const Revision second = Put("a", "2");
  EXPECT_TRUE(store().Compact(second).ok());
  EXPECT_TRUE(store().Compact(second).ok());
  EXPECT_TRUE(store().Compact(first).ok());
  EXPECT_EQ(Get("a")->value, "2");
}

TEST_P(StoreConformance, Compact_InTheFuture_IsAnError) {
  const Revision newest = Put("a", "1");
  EXPECT_EQ(store().Compact(newest + 100).error(), store::kFutureRevision);
}

TEST_P(StoreConformance, Compact_WhenAllIsDeleted_RevisionsGoOn) {
  Put("a", "1");
  const Revision deleted = Delete("a");
  ASSERT_TRUE(store().Compact(deleted).ok());
  EXPECT_EQ(Newest(), deleted);
  EXPECT_TRUE(List("").entries.empty());
  const Revision again = Put("a", "2");
  EXPECT_GT(again, deleted);
  EXPECT_EQ(Get("a")->create_revision, again);
}

}  // namespace
}  // namespace rocegw::testing
