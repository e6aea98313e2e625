// SPDX-License-Identifier: Apache-2.0
#include "gateway/memory/direct_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "gateway/wire/crc/icrc.h"

namespace rocegw::memory {
namespace {

TEST(PublishTail, SharesAnAlignedWordWithTheLastByte) {
  const struct {
    uint64_t address;
    uint32_t length, tail;
  } cases[] = {{0, 0, 0}, {0, 1, 1}, {0, 8, 8}, {0, 16, 8}, {8, 12, 4}, {4, 4, 4}, {5, 100, 1},
               {6, 2, 2}, {7, 1, 1}, {7, 2, 1}, {0, 9, 1},  {1, 7, 7},  {1, 8, 1}, {4096, 4096, 8}};
  for (const auto& c : cases) {
    MemoryOp op;
    op.address = c.address;
    op.length = c.length;
    EXPECT_EQ(PublishTail(op), c.tail) << c.address << "+" << c.length;
  }
}

class Direct : public ::testing::Test {
 protected:
  MemoryOp Op(OpKind kind, size_t at, uint32_t length) {
    MemoryOp op;
    op.kind = kind;
    op.address = 0x10000 + at;
    op.direct = memory + at;
    op.length = length;
    op.buffer = buffer;
    return op;
  }
  alignas(64) uint8_t memory[256] = {};
  alignas(64) uint8_t buffer[256] = {};
  AtomicLocks locks;
};

TEST_F(Direct, Write_EveryPlaceAndLength_WithAndWithoutPublish) {
  for (const bool publish : {false, true}) {
    for (size_t at = 0; at < 16; ++at) {
      for (uint32_t length = 0; length < 40; ++length) {
        std::memset(memory, 0xEE, sizeof memory);
        for (size_t i = 0; i < sizeof buffer; ++i) buffer[i] = static_cast<uint8_t>(i + 1);
        MemoryOp op = Op(OpKind::kWrite, at, length);
        op.publish = publish;
        ASSERT_TRUE(ExecuteDirect(op, locks));
        for (size_t i = 0; i < sizeof memory; ++i) {
          const bool inside = i >= at && i < at + length;
          ASSERT_EQ(memory[i], inside ? buffer[i - at] : 0xEE)
              << at << "+" << length << " byte " << i;
        }
      }
    }
  }
}

TEST_F(Direct, Read_CrcIsOfTheCopy) {
  for (size_t i = 0; i < sizeof memory; ++i) memory[i] = static_cast<uint8_t>(i * 7);
  MemoryOp op = Op(OpKind::kRead, 3, 200);
  op.want_crc = true;
  ASSERT_TRUE(ExecuteDirect(op, locks));
  EXPECT_TRUE(op.crc_valid);
  EXPECT_EQ(op.crc, wire::CrcUpdate(0, {memory + 3, 200}));
  EXPECT_EQ(std::memcmp(buffer, memory + 3, 200), 0);
  MemoryOp plain = Op(OpKind::kRead, 5, 10);
  ASSERT_TRUE(ExecuteDirect(plain, locks));
  EXPECT_FALSE(plain.crc_valid);
}

TEST_F(Direct, Atomics_ReturnTheOriginal) {
  uint64_t value = 40;
  std::memcpy(memory + 8, &value, 8);
  MemoryOp add = Op(OpKind::kFetchAdd, 8, 8);
  add.swap_or_add = 2;
  ASSERT_TRUE(ExecuteDirect(add, locks));
  std::memcpy(&value, buffer, 8);
  EXPECT_EQ(value, 40u);
  MemoryOp swap = Op(OpKind::kCompareSwap, 8, 8);
  swap.compare = 42;
  swap.swap_or_add = 7;
  ASSERT_TRUE(ExecuteDirect(swap, locks));
  std::memcpy(&value, buffer, 8);
  EXPECT_EQ(value, 42u);
  ASSERT_TRUE(ExecuteDirect(swap, locks));
  std::memcpy(&value, buffer, 8);
  EXPECT_EQ(value, 7u) << "comparison failed, nothing swapped";
  std::memcpy(&value, memory + 8, 8);
  EXPECT_EQ(value, 7u);
}

TEST_F(Direct, AtomicStore_IsThereAtOnceAndReturnsTheOriginal) {
  uint64_t value = 40;
  std::memcpy(memory + 8, &value, 8);
  MemoryOp store = Op(OpKind::kAtomicStore, 8, 8);
  store.swap_or_add = 0x1122334455667788;
  ASSERT_TRUE(ExecuteDirect(store, locks));
  std::memcpy(&value, buffer, 8);
  EXPECT_EQ(value, 40u);
  std::memcpy(&value, memory + 8, 8);
  EXPECT_EQ(value, 0x1122334455667788u);
  MemoryOp crooked = Op(OpKind::kAtomicStore, 4, 8);
  EXPECT_FALSE(ExecuteDirect(crooked, locks));
}

TEST_F(Direct, FetchOperations_ChangeTheWordAndReturnTheOriginal) {
  const struct {
    OpKind kind;
    uint64_t after;
  } cases[] = {{OpKind::kFetchAnd, 0x0C},
               {OpKind::kFetchOr, 0x3F},
               {OpKind::kFetchXor, 0x33},
               {OpKind::kAtomicLoad, 0x0F},
               {OpKind::kAtomicStore, 0x3C}};
  for (const auto& c : cases) {
    uint64_t value = 0x0F;
    std::memcpy(memory + 8, &value, 8);
    MemoryOp op = Op(c.kind, 8, 8);
    op.swap_or_add = 0x3C;
    ASSERT_TRUE(ExecuteDirect(op, locks));
    std::memcpy(&value, buffer, 8);
    EXPECT_EQ(value, 0x0Fu);
    std::memcpy(&value, memory + 8, 8);
    EXPECT_EQ(value, c.after);
    EXPECT_EQ(AtomicResult(op, 0x0F), c.after) << "the way by system calls does the same";
  }
}

TEST_F(Direct, Atomics_Misaligned_AreRefused) {
  MemoryOp add = Op(OpKind::kFetchAdd, 4, 8);
  EXPECT_FALSE(ExecuteDirect(add, locks));
}

TEST_F(Direct, Atomics_FromSeveralThreads_LoseNothing) {
  constexpr int kThreads = 4;
  constexpr int kAdds = 20000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      uint64_t original = 0;
      MemoryOp add = Op(OpKind::kFetchAdd, 16, 8);
      add.buffer = reinterpret_cast<uint8_t*>(&original);
      add.swap_or_add = 1;
      for (int i = 0; i < kAdds; ++i) ExecuteDirect(add, locks);
    });
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t value = 0;
  std::memcpy(&value, memory + 16, 8);
  EXPECT_EQ(value, uint64_t{kThreads} * kAdds);
}

}  // namespace
}  // namespace rocegw::memory
