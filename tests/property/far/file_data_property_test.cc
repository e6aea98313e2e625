// SPDX-License-Identifier: Apache-2.0
// Files in a space against a model that has each file as a string: random reads, writes, sizes,
// holes and deletions. The space is smaller than what the files want, and begins with bytes that
// are not zero.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "gateway/far/files/file_data.h"
#include "tests/support/far/memory_space.h"
#include "tests/support/random.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kMost = 5 * Blocks::kBytes;
constexpr timespec kNow{1000, 0};

struct ModelFile {
  FileData::FilePointer file;
  std::string bytes;
};

void Grow(std::string& bytes, uint64_t size) {
  if (bytes.size() < size) bytes.resize(size, '\0');
}

TEST(FileDataProperty, FilesAreWhatTheModelSays) {
  testing::Random random(testing::TestSeed(36));
  for (int round = 0; round < 30; round++) {
    MemorySpace space(8 * Blocks::kBytes);
    FileData data(space, 8 * Blocks::kBytes, 1 << 20);
    std::array<ModelFile, 3> files;
    for (ModelFile& each : files) each.file = data.Make(kNow);
    for (int step = 0; step < 400; step++) {
      ModelFile& each = files[random.Below(files.size())];
      const uint64_t begin = random.Below(kMost);
      uint64_t length = random.Between(1, std::min<uint64_t>(kMost - begin, 100000));
      if (random.Coin()) length = std::min<uint64_t>(length, random.Between(1, 9000));
      switch (random.Below(8)) {
        case 0: {
          const uint64_t size = random.Coin() ? begin : begin / 4096 * 4096;
          ASSERT_EQ(data.SetSize(each.file, size, kNow), 0);
          each.bytes.resize(size, '\0');
          break;
        }
        case 1: {
          const bool keep_size = random.Coin();
          ASSERT_EQ(data.Zero(each.file, begin, length, keep_size, kNow), 0);
          if (!keep_size) Grow(each.bytes, begin + length);
          for (uint64_t at = begin; at < std::min(begin + length, each.bytes.size()); at++) {
            each.bytes[at] = '\0';
          }
          break;
        }
        case 2: {
          const bool keep_size = random.Coin();
          const int error = data.Reserve(each.file, begin, length, keep_size, kNow);
          ASSERT_TRUE(error == 0 || error == -ENOSPC);
          if (error == 0 && !keep_size) Grow(each.bytes, begin + length);
          break;
        }
        case 3:
          if (random.Below(10) != 0) break;
          each.file = data.Make(kNow);
          each.bytes.clear();
          break;
        case 4: {
          const int64_t found = data.Seek(each.file, begin, true);
          if (begin >= each.bytes.size()) {
            ASSERT_EQ(found, -ENXIO);
            break;
          }
          // Everything before the data that was found is zero.
          const uint64_t behind = found < 0 ? each.bytes.size() : static_cast<uint64_t>(found);
          ASSERT_GE(behind, begin);
          ASSERT_EQ(each.bytes.find_first_not_of('\0', begin) < behind, false);
          break;
        }
        default: {
          const auto bytes = random.Bytes(length);
          int result = 1;
          data.Write(each.file, begin, bytes.data(), length, kNow,
                     [&](int status) { result = status; });
          ASSERT_TRUE(result == 0 || result == -ENOSPC);
          if (result != 0) break;
          Grow(each.bytes, begin + length);
          std::copy(bytes.begin(), bytes.end(), each.bytes.begin() + static_cast<long>(begin));
        }
      }
      const ModelFile& looked_at = files[random.Below(files.size())];
      ASSERT_EQ(data.GetState(looked_at.file).size, looked_at.bytes.size());
      std::string read;
      const uint64_t from = random.Coin() ? 0 : random.Below(kMost);
      data.Read(looked_at.file, from, kMost, [&](int status, const uint8_t* got, uint64_t count) {
        ASSERT_EQ(status, 0);
        read.assign(reinterpret_cast<const char*>(got), count);
      });
      ASSERT_TRUE(read ==
                  (from < looked_at.bytes.size() ? looked_at.bytes.substr(from) : std::string()));
    }
    for (ModelFile& each : files) each.file.reset();
    ASSERT_EQ(data.GetCounts().free_blocks, 8u);
  }
}

}  // namespace
}  // namespace rocegw::far
