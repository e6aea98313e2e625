// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/fleet/announcer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "gateway/far/fleet/folder_file.h"

namespace rocegw::far {
namespace {

class AnnouncerTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Announcer::Calls Calls() {
    return {.state =
                [this] {
                  Announcement announcement;
                  announcement.port = 7475;
                  announcement.draining = draining_;
                  return announcement;
                },
            .follow = [this](const DonorOrders& orders) { draining_ = orders.draining; }};
  }
  std::optional<Announcement> Announced() const {
    const auto file = ReadFolderFile(folder_ + "/a.donor");
    return file.ok() ? ReadAnnouncement(file.value().text) : std::nullopt;
  }

  const std::string folder_ = testing::TempDir() + "announcer_" + std::to_string(getpid());
  std::atomic<bool> draining_{false};
};

TEST_F(AnnouncerTest, AnnouncesFollowsAndWithdraws) {
  Announcer announcer;
  ASSERT_TRUE(announcer.Start(folder_, "a", Calls()).ok());
  ASSERT_TRUE(Announced());
  EXPECT_EQ(Announced()->port, 7475u);
  EXPECT_EQ(Announced()->generation, 0);
  DonorOrders orders;
  orders.generation = 4;
  orders.draining = true;
  ASSERT_TRUE(ReplaceFolderFile(folder_ + "/a.order", ToText(orders)).ok());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (Announced()->generation != 4 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Announced()->generation, 4);
  EXPECT_TRUE(Announced()->draining);
  announcer.Stop();
  EXPECT_FALSE(Announced());
}

TEST_F(AnnouncerTest, TakesOlderOrdersOverAtOnce) {
  DonorOrders orders;
  orders.generation = 4;
  orders.draining = true;
  ASSERT_TRUE(ReplaceFolderFile(folder_ + "/a.order", ToText(orders)).ok());
  Announcer announcer;
  ASSERT_TRUE(announcer.Start(folder_, "a", Calls()).ok());
  EXPECT_TRUE(Announced()->draining);
}

TEST_F(AnnouncerTest, TheDonorDrainsUntilThereAreOrders) {
  Announcer announcer;
  ASSERT_TRUE(announcer.Start(folder_, "a", Calls()).ok());
  EXPECT_TRUE(draining_);
  EXPECT_TRUE(Announced()->draining);
  DonorOrders orders;
  orders.generation = 1;
  ASSERT_TRUE(ReplaceFolderFile(folder_ + "/a.order", ToText(orders)).ok());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (draining_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_FALSE(draining_);
}

TEST_F(AnnouncerTest, OneNameHasOneDonor) {
  Announcer first;
  ASSERT_TRUE(first.Start(folder_, "a", Calls()).ok());
  Announcer second;
  EXPECT_EQ(second.Start(folder_, "a", Calls()).error(), EBUSY);
  EXPECT_TRUE(Announced());
  EXPECT_EQ(second.Start(folder_, "../a", Calls()).error(), EINVAL);
  EXPECT_EQ(second.Start(folder_ + "/none", "a", Calls()).error(), ENOENT);
}

}  // namespace
}  // namespace rocegw::far
