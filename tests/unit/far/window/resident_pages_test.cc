// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/window/resident_pages.h"

#include <gtest/gtest.h>

namespace rocegw::far {
namespace {

using State = ResidentPages::State;

void Arrive(ResidentPages& pages, uint64_t first, uint64_t count) {
  for (uint64_t page = first; page < first + count; page++) pages.Arrived(page, false);
}

TEST(ResidentPages, ReadAheadGrowsWhileFaultsAreSequential) {
  ResidentPages pages(1000);
  EXPECT_EQ(pages.Fetch(500), 1u);
  EXPECT_EQ(pages.Fetch(100), 1u);
  EXPECT_EQ(pages.Fetch(101), 2u);
  EXPECT_EQ(pages.Fetch(103), 4u);
  EXPECT_EQ(pages.Fetch(107), 8u);
  EXPECT_EQ(pages.Fetch(300), 1u);
  EXPECT_EQ(pages.used(), 17u);
}

TEST(ResidentPages, ReadAheadEndsAtResidentPagesAndAtTheEnd) {
  ResidentPages pages(16);
  Arrive(pages, 6, pages.Fetch(6));
  EXPECT_EQ(pages.Fetch(3), 1u);
  EXPECT_EQ(pages.Fetch(4), 2u);
  EXPECT_EQ(pages.Fetch(14), 1u);
  EXPECT_EQ(pages.Fetch(15), 1u);
}

TEST(ResidentPages, TheFirstThatArrivedAreEvicted) {
  ResidentPages pages(16);
  for (const uint64_t page : {9u, 3u, 12u}) Arrive(pages, page, pages.Fetch(page));
  EXPECT_EQ(pages.TakeVictims(2), (std::vector<uint64_t>{3, 9}));
  pages.Evicted(3);
  pages.Kept(9);
  EXPECT_EQ(pages.state(3), State::kAbsent);
  EXPECT_EQ(pages.used(), 2u);
  EXPECT_EQ(pages.TakeVictims(9), (std::vector<uint64_t>{9, 12}));
}

TEST(ResidentPages, InactivePagesAreEvictedUnlessTheyAreUsedAgain) {
  ResidentPages pages(16);
  for (const uint64_t page : {9u, 3u, 12u}) Arrive(pages, page, pages.Fetch(page));
  pages.Dirtied(3);
  for (const uint64_t page : pages.TakeVictims(2)) pages.Deactivated(page, 7 + page);
  EXPECT_EQ(pages.inactive(), 2u);
  EXPECT_EQ(pages.used(), 3u);
  EXPECT_EQ(pages.state(3), State::kInactiveDirty);
  EXPECT_EQ(pages.state(9), State::kInactiveClean);
  EXPECT_EQ(pages.place(3), 10u);
  pages.Reactivated(9, false);
  EXPECT_EQ(pages.TakeInactive(9), (std::vector<uint64_t>{3}));
  pages.Evicting(3);
  pages.Evicted(3);
  EXPECT_EQ(pages.inactive(), 0u);
  EXPECT_EQ(pages.used(), 2u);
  EXPECT_EQ(pages.TakeVictims(1), (std::vector<uint64_t>{12}));
}

TEST(ResidentPages, APageThatIsUsedAgainAndAgainIsNeverEvicted) {
  ResidentPages pages(1000);
  uint32_t places = 0;
  Arrive(pages, 0, pages.Fetch(0));
  for (uint64_t page = 2; page < 1000; page += 2) {
    if (pages.used() >= 32) {
      for (const uint64_t victim : pages.TakeInactive(4)) pages.Evicted(victim);
      for (const uint64_t victim : pages.TakeVictims(8)) pages.Deactivated(victim, places++);
    }
    Arrive(pages, page, pages.Fetch(page));
    if (pages.IsInactive(0)) pages.Reactivated(0, false);
    ASSERT_NE(pages.state(0), State::kAbsent);
  }
}

TEST(ResidentPages, InactivePagesAreWrittenBackAndDiscarded) {
  ResidentPages pages(16);
  for (const uint64_t page : {3u, 9u}) Arrive(pages, page, pages.Fetch(page));
  pages.Dirtied(3);
  for (const uint64_t page : pages.TakeVictims(2)) pages.Deactivated(page, 0);
  EXPECT_EQ(pages.NextDirty(0, 9), (std::vector<uint64_t>{3}));
  pages.Cleaned(3);
  EXPECT_EQ(pages.state(3), State::kInactiveClean);
  pages.Dirtied(3);
  EXPECT_EQ(pages.state(3), State::kInactiveDirty);
  pages.Discarded(3);
  EXPECT_EQ(pages.inactive(), 1u);
  EXPECT_EQ(pages.used(), 1u);
  EXPECT_EQ(pages.TakeInactive(9), (std::vector<uint64_t>{9}));
}

TEST(ResidentPages, PagesThatAreReadAreNoVictims) {
  ResidentPages pages(16);
  pages.Fetch(5);
  EXPECT_TRUE(pages.TakeVictims(1).empty());
  pages.Abandoned(5);
  EXPECT_EQ(pages.state(5), State::kAbsent);
  EXPECT_EQ(pages.used(), 0u);
}

TEST(ResidentPages, ALostPageIsNeitherUsedNorEvicted) {
  ResidentPages pages(16);
  pages.Fetch(5);
  pages.Lost(5);
  EXPECT_EQ(pages.used(), 0u);
  EXPECT_TRUE(pages.TakeVictims(1).empty());
  EXPECT_EQ(pages.state(5), State::kLost);
}

TEST(ResidentPages, PagesOfAnEmptyWindowAreZeroUntilTheyWereWrittenBack) {
  ResidentPages pages(16, false);
  EXPECT_FALSE(pages.stored(3));
  pages.Fetch(3);
  pages.Arrived(3, true);
  pages.Fetch(5);
  pages.Arrived(5, false);
  pages.TakeVictims(2);
  pages.Evicted(3);
  pages.Evicted(5);
  EXPECT_TRUE(pages.stored(3));
  EXPECT_FALSE(pages.stored(5));
}

TEST(ResidentPages, ReadAheadDoesNotMixZeroesWithStoredPages) {
  ResidentPages pages(16, false);
  pages.Fetch(4);
  pages.Arrived(4, true);
  pages.TakeVictims(1);
  pages.Evicted(4);
  EXPECT_EQ(pages.Fetch(2), 1u);
  EXPECT_EQ(pages.Fetch(3), 1u);
  EXPECT_EQ(pages.Fetch(4), 1u);
}

TEST(ResidentPages, DiscardedPagesAreZeroAndNoVictims) {
  ResidentPages pages(16);
  Arrive(pages, 5, pages.Fetch(5));
  Arrive(pages, 9, pages.Fetch(9));
  pages.Discarded(5);
  pages.Discarded(7);
  EXPECT_EQ(pages.used(), 1u);
  EXPECT_FALSE(pages.stored(5));
  EXPECT_TRUE(pages.stored(9));
  // The page's earlier arrival says nothing about the later one.
  Arrive(pages, 5, pages.Fetch(5));
  EXPECT_EQ(pages.TakeVictims(9), (std::vector<uint64_t>{5, 9}));
}

TEST(ResidentPages, PageThatIsEvictedIsNeitherResidentNorAbsent) {
  ResidentPages pages(16, false);
  pages.Fetch(3);
  EXPECT_TRUE(pages.IsMoving(3));
  pages.Arrived(3, true);
  EXPECT_EQ(pages.TakeVictims(1), (std::vector<uint64_t>{3}));
  pages.Evicting(3);
  EXPECT_TRUE(pages.IsMoving(3));
  EXPECT_FALSE(pages.IsResident(3));
  EXPECT_EQ(pages.used(), 1u);
  pages.Returned(3);
  EXPECT_EQ(pages.state(3), State::kDirty);
  EXPECT_EQ(pages.TakeVictims(1), (std::vector<uint64_t>{3}));
  pages.Evicting(3);
  pages.Evicted(3);
  EXPECT_TRUE(pages.stored(3));
  EXPECT_EQ(pages.used(), 0u);
}

TEST(ResidentPages, PagesThatLeftAreNeitherReadAheadNorEvicted) {
  ResidentPages pages(16, false);
  Arrive(pages, 5, pages.Fetch(5));
  pages.Left(5);
  pages.Left(7);
  EXPECT_EQ(pages.used(), 0u);
  // Two pages otherwise, because the fault is sequential.
  EXPECT_EQ(pages.Fetch(6), 1u);
  Arrive(pages, 6, 1);
  EXPECT_EQ(pages.state(7), State::kHere);
  EXPECT_EQ(pages.TakeVictims(9), (std::vector<uint64_t>{6}));
  pages.Discarded(5);
  EXPECT_EQ(pages.state(5), State::kHere);
}

TEST(ResidentPages, PagesThatJoinAgainAreAbsentAndZero) {
  ResidentPages pages(16);
  pages.Left(5);
  pages.Rejoined(5);
  EXPECT_EQ(pages.state(5), State::kAbsent);
  EXPECT_FALSE(pages.stored(5));
  Arrive(pages, 6, pages.Fetch(6));
  pages.Rejoined(6);
  EXPECT_EQ(pages.state(6), State::kClean);
}

TEST(ResidentPages, StoredPagesAreReadBeforeTheyLeave) {
  ResidentPages pages(16);
  pages.Discarded(6);
  EXPECT_EQ(pages.FetchStored(2, 9, 3), 3u);
  EXPECT_TRUE(pages.IsMoving(4));
  EXPECT_EQ(pages.FetchStored(5, 9, 3), 1u);
  EXPECT_EQ(pages.FetchStored(6, 9, 3), 0u);
  EXPECT_EQ(pages.FetchStored(7, 9, 9), 2u);
  EXPECT_EQ(pages.used(), 6u);
  for (const uint64_t page : {2u, 3u, 4u, 5u, 7u, 8u}) pages.Left(page);
  EXPECT_EQ(pages.used(), 0u);
}

TEST(ResidentPages, DirtyPagesAreFoundInOrder) {
  ResidentPages pages(16);
  for (const uint64_t page : {9u, 3u, 12u}) {
    pages.Fetch(page);
    pages.Arrived(page, true);
  }
  EXPECT_EQ(pages.NextDirty(0, 2), (std::vector<uint64_t>{3, 9}));
  pages.Cleaned(9);
  EXPECT_EQ(pages.NextDirty(4, 2), (std::vector<uint64_t>{12}));
  pages.Dirtied(9);
  EXPECT_EQ(pages.NextDirty(4, 2), (std::vector<uint64_t>{9, 12}));
}

}  // namespace
}  // namespace rocegw::far
