// SPDX-License-Identifier: Apache-2.0
#include "agent/donors/donor_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "gateway/far/fleet/folder_file.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::agent {
namespace {

class DonorFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(folder_.Open().ok()); }

  void Announce(const std::string& name, uint64_t leased = 0) {
    far::Announcement announcement;
    announcement.port = 7475;
    announcement.leased_bytes = leased;
    ASSERT_TRUE(far::ReplaceFolderFile(File(name + ".donor"), far::ToText(announcement)).ok());
    // The clock of files is coarse.
    const timespec times[2] = {{0, UTIME_OMIT}, {++changes_, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, File(name + ".donor").c_str(), times, 0), 0);
  }
  std::string File(const std::string& name) const { return folder_.path() + "/" + name; }
  auto ReadAt(int64_t seconds) {
    return folder_.Read(TimePoint{Seconds(1000 + seconds).ns}, changes_ * 1000000000);
  }

  rocegw::testing::ScratchDirectory directory_;
  DonorCounters counters_;
  DonorFolder folder_{directory_.File("donors"), counters_};
  int64_t changes_ = 1000;
};

TEST_F(DonorFolderTest, DonorsAreThereWhileTheirFilesChange) {
  Announce("a", 5);
  Announce("b");
  EXPECT_EQ(ReadAt(0).size(), 2u);
  EXPECT_EQ(ReadAt(0).at("a").leased_bytes, 5u);
  Announce("a", 6);
  EXPECT_EQ(ReadAt(9).at("a").leased_bytes, 6u);
  EXPECT_EQ(ReadAt(11).size(), 1u) << "b has said nothing for more than 10 s";
  EXPECT_EQ(counters_.donors, 1u);
  unlink(File("a.donor").c_str());
  EXPECT_TRUE(ReadAt(11).empty());
}

TEST_F(DonorFolderTest, AFileThatWasLeftBehindIsNoDonor) {
  Announce("a");
  changes_ += 100;  // time has passed since
  EXPECT_TRUE(ReadAt(0).empty());
  Announce("a");
  EXPECT_EQ(ReadAt(1).size(), 1u);
}

TEST_F(DonorFolderTest, NonsenseIsCountedAndLeftOut) {
  Announce("good");
  ASSERT_TRUE(far::ReplaceFolderFile(File("half.donor"), "rocegw-donor 1\nport 1\n").ok());
  ASSERT_TRUE(far::ReplaceFolderFile(File("No-Name.donor"), "").ok());
  ASSERT_EQ(mkfifo(File("fifo.donor").c_str(), 0600), 0);
  ASSERT_EQ(symlink("/etc/passwd", File("link.donor").c_str()), 0);
  EXPECT_EQ(ReadAt(0).size(), 1u);
  EXPECT_EQ(counters_.refused_files, 4u);
}

TEST_F(DonorFolderTest, WhatTheControllerWouldRefuseKeepsNoOtherDonorOut) {
  Announce("good");
  const std::vector<std::string> lines = {"address host-a",
                                          "address 10.0.0",
                                          "donated 1125899906842625",
                                          "leased 1125899906842625",
                                          "leases 1048577",
                                          "sessions 1048577",
                                          "tenant  5",
                                          "tenant \xff 5",
                                          "version \xff",
                                          "tenant " + std::string(32, 't') + " 5"};
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string text = "rocegw-donor 1\nport 1\n" + lines[i] + "\nend\n";
    ASSERT_TRUE(far::ReplaceFolderFile(File("bad" + std::to_string(i) + ".donor"), text).ok());
  }
  const auto donors = ReadAt(0);
  EXPECT_EQ(donors.size(), 1u);
  EXPECT_TRUE(donors.contains("good"));
  EXPECT_EQ(counters_.refused_files, lines.size());
}

TEST_F(DonorFolderTest, TheirNumberIsBounded) {
  for (int i = 0; i < 40; ++i) Announce("d" + std::to_string(i));
  EXPECT_EQ(folder_.Read(TimePoint{}, 0).size(), DonorFolder::kMostDonors);
  EXPECT_EQ(counters_.refused_files, 40 - DonorFolder::kMostDonors);
}

TEST_F(DonorFolderTest, OrdersReplaceTheFileWhenTheyDiffer) {
  far::DonorOrders orders;
  orders.generation = 2;
  ASSERT_TRUE(folder_.Order("a", orders).ok());
  const auto first = far::ReadFolderFile(File("a.order"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(far::ReadOrders(first.value().text), orders);
  ASSERT_TRUE(folder_.Order("a", orders).ok());
  EXPECT_EQ(far::ReadFolderFile(File("a.order")).value().changed_ns, first.value().changed_ns);
  orders.draining = true;
  ASSERT_TRUE(folder_.Order("a", orders).ok());
  EXPECT_EQ(far::ReadOrders(far::ReadFolderFile(File("a.order")).value().text), orders);
}

TEST_F(DonorFolderTest, OrdersThatVanishedAreWrittenAgain) {
  far::DonorOrders orders;
  orders.generation = 2;
  ASSERT_TRUE(folder_.Order("a", orders).ok());
  ASSERT_EQ(unlink(File("a.order").c_str()), 0);
  ASSERT_TRUE(folder_.Order("a", orders).ok());
  EXPECT_TRUE(far::ReadFolderFile(File("a.order")).ok());
}

TEST_F(DonorFolderTest, KnowsThatThereWereDonors) {
  ReadAt(0);
  EXPECT_FALSE(folder_.had_donors());
  Announce("a");
  ReadAt(0);
  unlink(File("a.donor").c_str());
  ReadAt(1);
  EXPECT_TRUE(folder_.had_donors());
  // Also an agent that has started since.
  ASSERT_TRUE(folder_.Order("a", {}).ok());
  DonorFolder later{folder_.path(), counters_};
  later.Read(TimePoint{}, 0);
  EXPECT_TRUE(later.had_donors());
}

TEST_F(DonorFolderTest, AFolderOfEverybodyIsRefused) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  EXPECT_EQ(folder_.Open().error(), EPERM);
}

}  // namespace
}  // namespace rocegw::agent
