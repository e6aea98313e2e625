// SPDX-License-Identifier: Apache-2.0
// Windows: which queue pairs may bind them to which region, and which bytes their keys open.
#include "gateway/verbs/memory_window.h"

#include <gtest/gtest.h>

#include "gateway/verbs/mr_table.h"

namespace rocegw::verbs::memory_window {
namespace {

constexpr uint64_t kIova = 0x10000;
constexpr uint64_t kLength = 0x1000;
constexpr uint64_t kAddress = 0x7F0000;
constexpr MemoryKey kRegion{0xABCD1234};
constexpr MemoryKey kFirst{0x55555500};
constexpr MemoryKey kSecond{0x55555501};
constexpr RemoteUser kUser{SessionId{3}, 5, Qpn{0x40001}, {1, 7}};
constexpr uint32_t kRemote = kAccessRemoteRead | kAccessRemoteWrite | kAccessRemoteAtomic;

class Windows : public ::testing::TestWithParam<MwType> {
 protected:
  Windows() : window(GetParam(), kUser.session, kUser.pd, kFirst) {
    region.key = kRegion;
    region.session = kUser.session;
    region.pd = kUser.pd;
    region.access = kAccessLocalWrite;
    region.iova = kIova;
    region.length = kLength;
    region.address = kAddress;
    region.windows = &bound;
    EXPECT_TRUE(table.Link(region));
    EXPECT_TRUE(table.LinkWindow(MemoryWindow::NameOf(kFirst), window));
  }
  static BindRequest Wish(uint64_t offset = 0x100, uint64_t length = 0x200,
                          uint32_t access = kRemote) {
    return {.before = kFirst,
            .key = kSecond,
            .region = kRegion,
            .access = access,
            .address = kIova + offset,
            .length = length};
  }
  bool Reaches(uint64_t va, uint64_t length, uint32_t access = kAccessRemoteWrite,
               const RemoteUser& user = kUser, MemoryKey key = kSecond) {
    return table.FindRemote(user, key, access, va, length).has_value();
  }
  bool is_type_2() const { return GetParam() == MwType::kType2; }

  BoundWindows bound;
  RegionConfig region;
  MemoryWindow window;
  MrTable table;
};

INSTANTIATE_TEST_SUITE_P(All, Windows, ::testing::Values(MwType::kType1, MwType::kType2),
                         [](const auto& parameter) {
                           return parameter.param == MwType::kType1 ? "Type1" : "Type2";
                         });

TEST_P(Windows, Bound_GivesAwayItsBytesUnderItsNewKey) {
  EXPECT_FALSE(Reaches(kIova + 0x100, 1, 0, kUser, kFirst)) << "bound to nothing";
  ASSERT_TRUE(table.Bind(kUser, Wish()));
  const auto place = table.FindRemote(kUser, kSecond, kAccessRemoteRead, kIova + 0x180, 0x80);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->address, kAddress + 0x180);
  EXPECT_EQ(place->direct, nullptr);
  EXPECT_TRUE(Reaches(kIova + 0x100, 0x200));
  EXPECT_FALSE(Reaches(kIova + 0xFF, 1));
  EXPECT_FALSE(Reaches(kIova + 0x100, 0x201));
  EXPECT_FALSE(Reaches(kIova + 0x300, 1));
  EXPECT_FALSE(Reaches(kIova + 0x101, UINT64_MAX));
  EXPECT_FALSE(Reaches(kIova + 0x100, 1, 0, kUser, kFirst)) << "its key until then";
  EXPECT_FALSE(Reaches(kIova + 0x100, 1, kAccessRemoteWrite, kUser, kRegion))
      << "its region has no right of that kind";
}

TEST_P(Windows, DirectMemory_IsFoundThroughTheWindow) {
  uint8_t pages[kLength];
  table.Unlink(kRegion);
  region.direct = pages;
  region.direct_length = kLength;
  ASSERT_TRUE(table.Link(region));
  ASSERT_TRUE(table.Bind(kUser, Wish()));
  EXPECT_EQ(table.FindRemote(kUser, kSecond, 0, kIova + 0x100, 8)->direct, pages + 0x100);
}

TEST_P(Windows, Rights_AreThoseOfTheWindow) {
  ASSERT_TRUE(table.Bind(kUser, Wish(0, 64, kAccessRemoteRead)));
  EXPECT_TRUE(Reaches(kIova, 64, kAccessRemoteRead));
  EXPECT_FALSE(Reaches(kIova, 64, kAccessRemoteWrite));
  EXPECT_FALSE(Reaches(kIova, 8, kAccessRemoteAtomic));
}

TEST_P(Windows, TheRightToWriteHere_IsNoneForPeers) {
  ASSERT_TRUE(table.Bind(kUser, Wish(0, 64, kAccessLocalWrite | kAccessRemoteRead)));
  EXPECT_TRUE(Reaches(kIova, 64, kAccessRemoteRead));
  EXPECT_FALSE(Reaches(kIova, 64, kAccessRemoteWrite));
}

TEST_P(Windows, Strangers_ReachNothing) {
  ASSERT_TRUE(table.Bind(kUser, Wish()));
  RemoteUser other = kUser;
  other.session = SessionId{4};
  EXPECT_FALSE(Reaches(kIova + 0x100, 1, 0, other));
  other = kUser;
  other.pd = 6;
  EXPECT_FALSE(Reaches(kIova + 0x100, 1, 0, other));
  EXPECT_FALSE(table.Bind(other, Wish()));
  // A type 2 window belongs to its queue pair only, even if the number is reused.
  other = kUser;
  other.qpn = Qpn{0x40002};
  EXPECT_EQ(Reaches(kIova + 0x100, 1, 0, other), !is_type_2());
  EXPECT_FALSE(table.Invalidate(other, kSecond));
  other = kUser;
  other.qp.generation = 8;
  EXPECT_EQ(Reaches(kIova + 0x100, 1, 0, other), !is_type_2());
}

TEST_P(Windows, WrongWishes_ChangeNothing) {
  struct Case {
    const char* what;
    BindRequest wish;
  };
  std::vector<Case> cases = {
      {"begins too early", Wish(uint64_t(-1), 2)},
      {"ends too late", Wish(0, kLength + 1)},
      {"wraps", Wish(1, UINT64_MAX)},
      {"binding", Wish(0, 1, kAccessMwBind)},
      {"unknown access", Wish(0, 1, 1u << 20)},
      {"no such region", Wish()},
      {"not its key", Wish()},
  };
  cases[5].wish.region = MemoryKey{99};
  cases[6].wish.before = kSecond;
  for (const Case& c : cases) EXPECT_FALSE(table.Bind(kUser, c.wish)) << c.what;
  EXPECT_TRUE(bound.Close()) << "nothing is bound";
  EXPECT_FALSE(table.Bind(kUser, Wish())) << "its region is about to go";
}

TEST_P(Windows, RegionsThatDoNotAllowIt_Refused) {
  const struct {
    const char* what;
    void (*change)(RegionConfig&);
    bool reading;  // a window that is only read
  } cases[] = {
      {"no windows", [](RegionConfig& r) { r.windows = nullptr; }, false},
      {"other domain", [](RegionConfig& r) { r.pd = 6; }, false},
      {"other session", [](RegionConfig& r) { r.session = SessionId{9}; }, false},
      {"not to be written", [](RegionConfig& r) { r.access = 0; }, true},
  };
  for (const auto& c : cases) {
    table.Unlink(kRegion);
    RegionConfig changed = region;
    c.change(changed);
    ASSERT_TRUE(table.Link(changed));
    EXPECT_FALSE(table.Bind(kUser, Wish())) << c.what;
    EXPECT_FALSE(Reaches(kIova + 0x100, 1, 0)) << c.what;
    EXPECT_EQ(table.Bind(kUser, Wish(0, 8, kAccessRemoteRead)), c.reading) << c.what;
  }
}

TEST_P(Windows, ZeroBased_CountsFromItsFirstByte) {
  const bool bound_now = table.Bind(kUser, Wish(0x100, 0x200, kRemote | kAccessZeroBased));
  EXPECT_EQ(bound_now, is_type_2());
  if (!is_type_2()) return;
  EXPECT_TRUE(Reaches(0, 0x200));
  EXPECT_FALSE(Reaches(0, 0x201));
  EXPECT_FALSE(Reaches(kIova + 0x100, 1));
  EXPECT_EQ(table.FindRemote(kUser, kSecond, 0, 5, 1)->address, kAddress + 0x105);
}

TEST_P(Windows, BoundRegion_IsHeldUntilTheWindowLetsGo) {
  ASSERT_TRUE(table.Bind(kUser, Wish()));
  EXPECT_FALSE(bound.Close());
  if (is_type_2()) {
    EXPECT_TRUE(table.Invalidate(kUser, kSecond));
  } else {
    BindRequest none = Wish(0, 0);
    none.before = kSecond;
    none.region = MemoryKey{0};
    EXPECT_TRUE(table.Bind(kUser, none)) << "no length binds it to nothing";
  }
  EXPECT_FALSE(Reaches(kIova + 0x100, 1, 0));
  EXPECT_TRUE(bound.Close());
}

TEST_P(Windows, BoundAnew_Type1MovesType2MustBeTakenBackFirst) {
  ASSERT_TRUE(table.Bind(kUser, Wish(0, 16)));
  BindRequest again = Wish(32, 16);
  again.before = kSecond;
  again.key = MemoryKey{0x99999902};
  EXPECT_EQ(table.Bind(kUser, again), !is_type_2());
  if (is_type_2()) {
    ASSERT_TRUE(table.Invalidate(kUser, kSecond));
    EXPECT_FALSE(table.Invalidate(kUser, kSecond)) << "once";
    ASSERT_TRUE(table.Bind(kUser, again));
  } else {
    EXPECT_FALSE(table.Invalidate(kUser, MemoryKey{0x55555502})) << "type 2 only";
  }
  EXPECT_TRUE(Reaches(kIova + 32, 16, 0, kUser, MemoryKey{0x55555502})) << "its name stays";
  EXPECT_FALSE(Reaches(kIova, 1, 0)) << "the key before";
  window.Unbind();
  EXPECT_TRUE(bound.Close()) << "one region, one window: counted once";
}

TEST_P(Windows, RegionThatIsGone_GivesNothingAway) {
  ASSERT_TRUE(table.Bind(kUser, Wish()));
  table.Unlink(kRegion);
  EXPECT_FALSE(Reaches(kIova + 0x100, 1, 0));
  ASSERT_TRUE(table.UnlinkWindow(MemoryWindow::NameOf(kFirst)));
  EXPECT_FALSE(table.Invalidate(kUser, kSecond));
  EXPECT_FALSE(table.Bind(kUser, Wish()));
}

}  // namespace
}  // namespace rocegw::verbs::memory_window
