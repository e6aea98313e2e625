// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/disk/disk_copy.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/far/faulty_file.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = CopyFile::kPageBytes;
constexpr uint64_t kPages = 64;
constexpr auto kLong = std::chrono::seconds(60);

class DiskCopyTest : public testing::Test {
 protected:
  DiskCopyTest() { EXPECT_TRUE(copy_.Start().ok()); }
  ~DiskCopyTest() override {
    disk_.GoOn();
    copy_.Stop(kLong);
  }

  // Starts a write of one byte value; its status goes to `statuses_` at the returned index.
  size_t Write(uint64_t offset, uint64_t length, uint8_t value) {
    uint8_t* data = copy_.Allocate(length);
    EXPECT_NE(data, nullptr);
    std::memset(data, value, length);
    const size_t index = Reserve();
    copy_.Write(offset, data, length,
                [this, done = Done(index)](int status, const DiskCopy::Pages& bad) {
                  if (status != 0) bad_ = bad;
                  done(status);
                });
    return index;
  }
  size_t Read(uint64_t offset, std::vector<uint8_t>& buffer) {
    const size_t index = Reserve();
    copy_.Read(offset, buffer.data(), buffer.size(), Done(index));
    return index;
  }
  size_t Flush() {
    const size_t index = Reserve();
    copy_.Flush(Done(index));
    return index;
  }
  int Wait(size_t index) {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return statuses_[index] != kPending; });
    return statuses_[index];
  }
  std::vector<uint8_t> Content(uint64_t offset, uint64_t length) {
    const std::lock_guard lock(disk_.mutex);
    const auto begin = disk_.bytes.begin() + static_cast<long>(offset);
    return {begin, begin + static_cast<long>(length)};
  }

  DiskCopy::Pages bad_;  // pages that the last failed write has not written
  FaultyDisk disk_{kPages * kPage};
  DiskCopy copy_{std::make_unique<FaultyFile>(disk_), 16 * kPage, 8 * kPage};

 private:
  static constexpr int kPending = 1;

  size_t Reserve() {
    const std::lock_guard lock(mutex_);
    statuses_.push_back(kPending);
    return statuses_.size() - 1;
  }
  DiskCopy::Done Done(size_t index) {
    return [this, index](int status) {
      const std::lock_guard lock(mutex_);
      statuses_[index] = status;
      ended_.notify_all();
    };
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<int> statuses_;
};

TEST_F(DiskCopyTest, ReadSeesTheWritesThatEnteredBeforeIt) {
  disk_.Hang();
  Write(0, kPage, 1);
  Write(0, kPage, 2);
  std::vector<uint8_t> buffer(kPage);
  const size_t read = Read(0, buffer);
  const size_t later = Write(0, kPage, 3);
  disk_.GoOn();
  EXPECT_EQ(Wait(read), 0);
  EXPECT_EQ(buffer, std::vector<uint8_t>(kPage, 2));
  EXPECT_EQ(Wait(later), 0);
  EXPECT_EQ(Content(0, kPage), std::vector<uint8_t>(kPage, 3));
}

TEST_F(DiskCopyTest, AdjacentWritesThatWaitBecomeOne) {
  disk_.Hang();
  Write(10 * kPage, kPage, 9);
  disk_.WaitUntilItHangs();
  for (uint64_t page = 0; page < 4; page++) Write(page * kPage, kPage, 1);
  const size_t last = Write(4 * kPage, kPage, 1);
  disk_.GoOn();
  EXPECT_EQ(Wait(last), 0);
  ASSERT_EQ(disk_.writes.size(), 2u);
  EXPECT_EQ(disk_.writes[1].length, 5 * kPage);
}

TEST_F(DiskCopyTest, ShortTransfersAreContinued) {
  disk_.most_at_once = kPage;
  EXPECT_EQ(Wait(Write(0, 4 * kPage, 7)), 0);
  EXPECT_EQ(Content(0, 4 * kPage), std::vector<uint8_t>(4 * kPage, 7));
  std::vector<uint8_t> buffer(4 * kPage);
  EXPECT_EQ(Wait(Read(0, buffer)), 0);
  EXPECT_EQ(buffer, std::vector<uint8_t>(4 * kPage, 7));
}

TEST_F(DiskCopyTest, ShortTransferThatEndsWithinAPageIsRepeatedFromThePage) {
  disk_.most_at_once = kPage + 100;
  EXPECT_EQ(Wait(Write(0, 4 * kPage, 7)), 0);
  EXPECT_EQ(Content(0, 4 * kPage), std::vector<uint8_t>(4 * kPage, 7));
}

TEST_F(DiskCopyTest, TransferOfNothingIsAnError) {
  disk_.most_at_once = 0;
  EXPECT_EQ(Wait(Write(0, kPage, 7)), -EIO);
}

TEST_F(DiskCopyTest, PartOfAPageKeepsTheRest) {
  EXPECT_EQ(Wait(Write(0, 3 * kPage, 1)), 0);
  EXPECT_EQ(Wait(Write(kPage - 10, 20, 2)), 0);
  EXPECT_EQ(Wait(Write(2 * kPage + 5, 1, 3)), 0);
  std::vector<uint8_t> expected(3 * kPage, 1);
  std::fill_n(expected.begin() + kPage - 10, 20, 2);
  expected[2 * kPage + 5] = 3;
  EXPECT_EQ(Content(0, 3 * kPage), expected);
  std::vector<uint8_t> part(30);
  EXPECT_EQ(Wait(Read(kPage - 15, part)), 0);
  EXPECT_EQ(part,
            std::vector<uint8_t>(expected.begin() + kPage - 15, expected.begin() + kPage + 15));
}

TEST_F(DiskCopyTest, ExactlyTheWritesFailThatTheDiskRefuses) {
  disk_.bad_pages = {2};
  disk_.error = ENOSPC;
  disk_.Hang();
  Write(10 * kPage, kPage, 9);
  disk_.WaitUntilItHangs();
  std::vector<size_t> writes;
  for (uint64_t page = 0; page < 5; page++) writes.push_back(Write(page * kPage, kPage, 1));
  disk_.GoOn();
  for (uint64_t page = 0; page < 5; page++) {
    EXPECT_EQ(Wait(writes[page]), page == 2 ? -ENOSPC : 0) << page;
  }
  std::vector<uint8_t> buffer(kPage);
  disk_.error = EIO;
  EXPECT_EQ(Wait(Read(2 * kPage, buffer)), -EIO);
  EXPECT_EQ(Wait(Read(3 * kPage, buffer)), 0);
  EXPECT_EQ(copy_.GetCounts().errors, 2u);
  EXPECT_TRUE(copy_.up());
}

TEST_F(DiskCopyTest, WriteOfSeveralPagesSaysWhichOfThemFailed) {
  disk_.bad_pages = {2, 5};
  EXPECT_EQ(Wait(Write(kPage + 100, 6 * kPage, 1)), -EIO);
  EXPECT_EQ(bad_, (DiskCopy::Pages{2 * kPage, 5 * kPage}));
  EXPECT_EQ(Content(3 * kPage, 2 * kPage), std::vector<uint8_t>(2 * kPage, 1));
  EXPECT_EQ(Content(7 * kPage, 100), std::vector<uint8_t>(100, 1));
  EXPECT_EQ(Content(7 * kPage + 100, 1), std::vector<uint8_t>(1, 0));
}

TEST_F(DiskCopyTest, CopyComesBackOnlyAfterAllFailuresWereReported) {
  disk_.Hang();
  Write(0, kPage, 1);
  disk_.WaitUntilItHangs();
  // The disk answers while the failures are reported.
  bool up = false;
  copy_.Flush([&](int /*status*/) {
    disk_.GoOn();
    for (int look = 0; look < 20000 && !up; look++) {
      std::this_thread::yield();
      up = copy_.up();
    }
  });
  copy_.FailIfHung(std::chrono::seconds(0));
  EXPECT_FALSE(up);
  while (!copy_.up()) std::this_thread::yield();
  EXPECT_EQ(Wait(Flush()), 0);
}

TEST_F(DiskCopyTest, FlushThatHungAndFailedFailsTheNextOne) {
  for (const int error : {0, EIO}) {
    disk_.sync_error = error;
    disk_.Hang();
    const size_t flush = Flush();
    disk_.WaitUntilItHangs();
    copy_.FailIfHung(std::chrono::seconds(0));
    EXPECT_EQ(Wait(flush), DiskCopy::kNoResult);
    disk_.GoOn();
    while (!copy_.up()) std::this_thread::yield();
    disk_.sync_error = 0;
    EXPECT_EQ(Wait(Flush()), -error);
    EXPECT_EQ(Wait(Flush()), 0);
  }
}

TEST_F(DiskCopyTest, QueueIsBounded) {
  disk_.Hang();
  for (int write = 0; write < 16; write++) Write(0, 1, 1);
  EXPECT_EQ(copy_.Allocate(1), nullptr);
  EXPECT_EQ(copy_.GetCounts().queued_bytes, 16u);
  const size_t flush = Flush();
  disk_.GoOn();
  EXPECT_EQ(Wait(flush), 0);
  EXPECT_EQ(copy_.GetCounts().queued_bytes, 0u);
  uint8_t* data = copy_.Allocate(16 * kPage);
  EXPECT_NE(data, nullptr);
  copy_.Free(data);
}

TEST_F(DiskCopyTest, FlushComesAfterTheWritesBeforeIt) {
  Write(0, kPage, 1);
  EXPECT_EQ(Wait(Flush()), 0);
  EXPECT_EQ(disk_.syncs, 1);
  EXPECT_EQ(Content(0, kPage), std::vector<uint8_t>(kPage, 1));
  disk_.sync_error = EIO;
  EXPECT_EQ(Wait(Flush()), -EIO);
}

TEST_F(DiskCopyTest, FlushedWritesSurviveAPowerFailureAndOthersMayNot) {
  const auto durable = [&] {
    const std::lock_guard lock(disk_.mutex);
    return disk_.durable[0];
  };
  EXPECT_EQ(Wait(Write(0, kPage, 1)), 0);
  EXPECT_EQ(durable(), 0);
  EXPECT_EQ(Wait(Flush()), 0);
  EXPECT_EQ(durable(), 1);
  EXPECT_EQ(Wait(Write(0, kPage, 2)), 0);
  copy_.Stop(kLong);
  EXPECT_EQ(durable(), 2);
}

TEST_F(DiskCopyTest, NoteOfLostPagesComesAfterTheFlushBeforeIt) {
  disk_.Hang();
  Flush();
  int status = 1;
  copy_.NoteLost({{kPage, 3 * kPage}}, [&](int noted) { status = noted; });
  const size_t flush = Flush();
  EXPECT_TRUE(disk_.lost.empty());
  disk_.GoOn();
  EXPECT_EQ(Wait(flush), 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(disk_.lost, (std::vector<CopyFile::Range>{{kPage, 3 * kPage}}));
}

TEST_F(DiskCopyTest, ZeroesBecomeAHole) {
  DiskCopy copy(std::make_unique<FaultyFile>(disk_), 64 * kPage, 64 * kPage);
  ASSERT_TRUE(copy.Start().ok());
  uint8_t* data = copy.Allocate(32 * kPage);
  ASSERT_NE(data, nullptr);
  std::memset(data, 0, 32 * kPage);
  copy.Write(8 * kPage, data, 32 * kPage,
             [](int status, const DiskCopy::Pages&) { EXPECT_EQ(status, 0); });
  copy.Stop(kLong);
  ASSERT_EQ(disk_.punches.size(), 1u);
  EXPECT_EQ(disk_.punches[0].offset, 8 * kPage);
  EXPECT_EQ(disk_.punches[0].length, 32 * kPage);
  EXPECT_TRUE(disk_.writes.empty());
}

TEST_F(DiskCopyTest, DiskThatHangsFailsWhatWaitsAndComesBack) {
  std::vector<uint8_t> buffer(kPage, 42);
  disk_.Hang();
  const size_t read = Read(0, buffer);
  disk_.WaitUntilItHangs();
  const size_t write = Write(0, kPage, 1);
  const size_t flush = Flush();
  copy_.FailIfHung(kLong);
  EXPECT_TRUE(copy_.up());
  copy_.FailIfHung(std::chrono::seconds(0));
  EXPECT_FALSE(copy_.up());
  EXPECT_EQ(Wait(read), DiskCopy::kNoResult);
  EXPECT_EQ(Wait(write), DiskCopy::kNoResult);
  EXPECT_EQ(Wait(flush), DiskCopy::kNoResult);
  EXPECT_EQ(copy_.Allocate(1), nullptr);
  EXPECT_EQ(Wait(Flush()), DiskCopy::kNoResult);
  EXPECT_EQ(copy_.GetCounts().hangs, 1u);
  EXPECT_EQ(copy_.GetCounts().queued_bytes, 0u);
  disk_.GoOn();
  while (!copy_.up()) std::this_thread::yield();
  // The late read does not touch the buffer, which is its owner's again.
  EXPECT_EQ(buffer, std::vector<uint8_t>(kPage, 42));
  EXPECT_EQ(Wait(Write(0, kPage, 3)), 0);
  EXPECT_EQ(Content(0, kPage), std::vector<uint8_t>(kPage, 3));
}

TEST_F(DiskCopyTest, StopExecutesWhatWaits) {
  disk_.Hang();
  for (uint64_t page = 0; page < 16; page++) Write(2 * page * kPage, kPage, 5);
  disk_.GoOn();
  copy_.Stop(kLong);
  for (uint64_t page = 0; page < 16; page++) {
    EXPECT_EQ(Content(2 * page * kPage, kPage), std::vector<uint8_t>(kPage, 5)) << page;
  }
  EXPECT_EQ(disk_.syncs, 1);
}

TEST_F(DiskCopyTest, StopDoesNotWaitForADiskThatHangs) {
  disk_.Hang();
  const size_t write = Write(0, kPage, 5);
  disk_.WaitUntilItHangs();
  copy_.Stop(std::chrono::milliseconds(1));
  EXPECT_EQ(Wait(write), DiskCopy::kNoResult);
  disk_.GoOn();
  // The thread has ended, or ends without this object, before the disk of the test does.
  while (true) {
    const std::lock_guard lock(disk_.mutex);
    if (disk_.waiting == 0) break;
  }
}

}  // namespace
}  // namespace rocegw::far
