// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/file_data.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/support/far/memory_space.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kPage = Blocks::kPageBytes;
constexpr timespec kNow{1000, 0};

class FileDataTest : public ::testing::Test {
 protected:
  int Write(const FileData::FilePointer& file, uint64_t offset, const std::string& text) {
    int result = 1;
    data_.Write(file, offset, reinterpret_cast<const uint8_t*>(text.data()), text.size(), kNow,
                [&](int status) { result = status; });
    return result;
  }
  // The bytes, or the error.
  std::string Read(const FileData::FilePointer& file, uint64_t offset, uint64_t length) {
    std::string text = "no reply";
    data_.Read(file, offset, length, [&](int status, const uint8_t* bytes, uint64_t got) {
      text = status != 0 ? "error " + std::to_string(-status)
                         : std::string(reinterpret_cast<const char*>(bytes), got);
    });
    return text;
  }

  MemorySpace space_{4 * Blocks::kBytes};
  FileData data_{space_, 4 * Blocks::kBytes, 1 << 20};
};

TEST_F(FileDataTest, FlushSaysWhatTheSpaceSays) {
  int result = 1;
  const auto flush = [&] { data_.Flush([&](int status) { result = status; }); };
  flush();
  EXPECT_EQ(result, 0);
  EXPECT_EQ(data_.GetCounts().failed, 0u);
  space_.FailFlushes();
  flush();
  EXPECT_EQ(result, -EIO);
  EXPECT_EQ(data_.GetCounts().failed, 1u);
  data_.WaitUntilIdle();
}

TEST_F(FileDataTest, BytesThatWereNotWrittenAreZero) {
  const auto file = data_.Make(kNow);
  EXPECT_EQ(Write(file, 10, "data"), 0);
  EXPECT_EQ(Read(file, 0, 100), std::string(10, '\0') + "data");
  ASSERT_EQ(data_.SetSize(file, 3 * kPage, kNow), 0);
  EXPECT_EQ(Read(file, 12, 3 * kPage), "ta" + std::string(3 * kPage - 14, '\0'));
}

TEST_F(FileDataTest, AFileThatShrinksAndGrowsHasNoOldBytes) {
  const auto file = data_.Make(kNow);
  EXPECT_EQ(Write(file, 0, std::string(2 * kPage, 'x')), 0);
  ASSERT_EQ(data_.SetSize(file, 5, kNow), 0);
  ASSERT_EQ(data_.SetSize(file, 2 * kPage, kNow), 0);
  EXPECT_EQ(Read(file, 0, 2 * kPage), "xxxxx" + std::string(2 * kPage - 5, '\0'));
}

TEST_F(FileDataTest, BlocksOfADeletedFileAreUsedAgainWithoutItsBytes) {
  auto file = data_.Make(kNow);
  EXPECT_EQ(Write(file, 0, std::string(4 * Blocks::kBytes, 'x')), 0);
  const auto other = data_.Make(kNow);
  EXPECT_EQ(Write(other, 0, "y"), -ENOSPC);
  file.reset();
  EXPECT_EQ(Write(other, 1, "y"), 0);
  ASSERT_EQ(data_.SetSize(other, Blocks::kBytes, kNow), 0);
  EXPECT_EQ(Read(other, 0, Blocks::kBytes),
            std::string(1, '\0') + "y" + std::string(Blocks::kBytes - 2, '\0'));
}

TEST_F(FileDataTest, ABlockIsNotReusedWhileAReadOfItsOldFileIsInFlight) {
  auto file = data_.Make(kNow);
  EXPECT_EQ(Write(file, 0, std::string(4 * Blocks::kBytes, 'x')), 0);
  space_.Hold();
  std::string text;
  data_.Read(file, 0, 3, [&](int /*status*/, const uint8_t* bytes, uint64_t got) {
    text.assign(reinterpret_cast<const char*>(bytes), got);
  });
  ASSERT_EQ(data_.SetSize(file, 0, kNow), 0);
  EXPECT_EQ(data_.GetCounts().free_blocks, 3u);
  space_.CompleteHeld();
  EXPECT_EQ(text, "xxx");
  EXPECT_EQ(data_.GetCounts().free_blocks, 4u);
}

TEST_F(FileDataTest, TwoFirstWritesOfOnePageBothLast) {
  const auto file = data_.Make(kNow);
  space_.Hold();
  int first = 1;
  data_.Write(file, 0, reinterpret_cast<const uint8_t*>("a"), 1, kNow,
              [&](int status) { first = status; });
  // The second write waits for the first one, which would put zeroes where the second one writes.
  std::thread other([&] { EXPECT_EQ(Write(file, 1, "b"), 0); });
  space_.CompleteHeld();
  other.join();
  EXPECT_EQ(first, 0);
  EXPECT_EQ(Read(file, 0, 2), "ab");
}

TEST_F(FileDataTest, ALostPageFailsAloneAndIsGoodAgainWhenWritten) {
  const auto file = data_.Make(kNow);
  EXPECT_EQ(Write(file, 0, std::string(3 * kPage, 'x')), 0);
  space_.LosePage(1);
  EXPECT_EQ(Read(file, 0, kPage), std::string(kPage, 'x'));
  EXPECT_EQ(Read(file, kPage, 1), "error 5");
  EXPECT_EQ(Read(file, 2 * kPage, kPage), std::string(kPage, 'x'));
  EXPECT_EQ(Write(file, kPage + 1, "y"), -EIO);
  EXPECT_EQ(Write(file, kPage, std::string(kPage, 'y')), 0);
  EXPECT_EQ(Read(file, kPage, 2), "yy");
  EXPECT_EQ(data_.GetCounts().failed, 2u);
}

TEST_F(FileDataTest, AHoleIsReadWithoutATransferAndFreesItsBlocks) {
  const auto file = data_.Make(kNow);
  EXPECT_EQ(Write(file, 0, std::string(2 * Blocks::kBytes, 'x')), 0);
  ASSERT_EQ(data_.Zero(file, 100, 2 * Blocks::kBytes - 200, true, kNow), 0);
  EXPECT_EQ(
      Read(file, 0, 2 * Blocks::kBytes),
      std::string(100, 'x') + std::string(2 * Blocks::kBytes - 200, '\0') + std::string(100, 'x'));
  EXPECT_EQ(data_.Seek(file, kPage, true), static_cast<int64_t>(2 * Blocks::kBytes - kPage));
  EXPECT_EQ(data_.Seek(file, 0, false), static_cast<int64_t>(kPage));
  ASSERT_EQ(data_.Zero(file, 0, 2 * Blocks::kBytes, true, kNow), 0);
  EXPECT_EQ(data_.GetCounts().free_blocks, 4u);
  const uint64_t before = space_.transfers();
  EXPECT_EQ(Read(file, 5, 2), std::string(2, '\0'));
  EXPECT_EQ(space_.transfers(), before);
}

TEST_F(FileDataTest, ReservedBlocksAreThereWhenTheSpaceIsFull) {
  const auto file = data_.Make(kNow);
  ASSERT_EQ(data_.Reserve(file, 0, Blocks::kBytes, true, kNow), 0);
  const auto other = data_.Make(kNow);
  EXPECT_EQ(Write(other, 0, std::string(3 * Blocks::kBytes, 'x')), 0);
  EXPECT_EQ(data_.Reserve(other, 0, 4 * Blocks::kBytes, false, kNow), -ENOSPC);
  EXPECT_EQ(Write(file, 0, "y"), 0);
  EXPECT_EQ(data_.GetState(file).size, 1u);
}

TEST_F(FileDataTest, AdjacentBlocksAreOneTransfer) {
  const auto file = data_.Make(kNow);
  EXPECT_EQ(Write(file, 0, std::string(3 * Blocks::kBytes, 'x')), 0);
  EXPECT_EQ(space_.transfers(), 1u);
}

}  // namespace
}  // namespace rocegw::far
