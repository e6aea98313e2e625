// SPDX-License-Identifier: Apache-2.0
// Which cache lines of its channel and of its queue pair a message touches in steady state. The
// sources of flow, channel and transport are compiled once more for this program, with a call for
// every access to memory (what ThreadSanitizer's instrumentation emits; the functions called are
// the ones below, not the sanitizer's). Lines are counted in the blocks that the worker under test
// has allocated. What only other modules touch (the worker's table, counters, rings) is not theirs.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <set>

#include "gateway/transport/queue_pair.h"
#include "tests/support/state_world.h"

namespace {

constexpr uintptr_t kLine = 64;

struct Block {
  uintptr_t base;
  size_t size;
};
// Blocks of the worker under test, by time of allocation.
Block blocks[1 << 16];
size_t block_count = 0;
bool inside = false;    // the worker under test runs
bool watching = false;  // and its accesses count
// Lines by the size of their block, which tells what it is.
std::map<size_t, std::set<uintptr_t>>* touched = nullptr;

void OnAccess(const void* pointer, size_t size) {
  if (!inside || !watching) return;
  const auto at = reinterpret_cast<uintptr_t>(pointer);
  for (size_t i = 0; i < block_count; ++i) {
    const Block& block = blocks[i];
    if (at < block.base || at >= block.base + block.size) continue;
    inside = false;  // the notes are not the worker's
    // Lines as they are when blocks begin at one.
    for (uintptr_t line = (at - block.base) / kLine; line <= (at + size - 1 - block.base) / kLine;
         ++line) {
      (*touched)[block.size].insert(i << 20 | line);
    }
    inside = true;
    return;
  }
}

void* Allocate(size_t size) {
  void* const pointer = std::malloc(size);
  if (pointer == nullptr) std::abort();
  if (inside && block_count < std::size(blocks))
    blocks[block_count++] = {reinterpret_cast<uintptr_t>(pointer), size};
  return pointer;
}

void Free(void* pointer) {
  for (size_t i = block_count; inside && i > 0; --i) {
    if (blocks[i - 1].base != reinterpret_cast<uintptr_t>(pointer)) continue;
    blocks[i - 1].size = 0;
    break;
  }
  std::free(pointer);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void operator delete(void* pointer) noexcept { Free(pointer); }
void operator delete[](void* pointer) noexcept { Free(pointer); }
void operator delete(void* pointer, size_t) noexcept { Free(pointer); }
void operator delete[](void* pointer, size_t) noexcept { Free(pointer); }

// What instrumented code calls.
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses)
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** pointer, void*) { OnAccess(pointer, 8); }
void __tsan_vptr_read(void** pointer) { OnAccess(pointer, 8); }
void __tsan_read_range(void* pointer, size_t size) { OnAccess(pointer, size); }
void __tsan_write_range(void* pointer, size_t size) { OnAccess(pointer, size); }
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}
#define ACCESS(bytes)                                                 \
  void __tsan_read##bytes(void* p) { OnAccess(p, bytes); }            \
  void __tsan_write##bytes(void* p) { OnAccess(p, bytes); }           \
  void __tsan_unaligned_read##bytes(void* p) { OnAccess(p, bytes); }  \
  void __tsan_unaligned_write##bytes(void* p) { OnAccess(p, bytes); } \
  void __tsan_volatile_read##bytes(void* p) { OnAccess(p, bytes); }   \
  void __tsan_volatile_write##bytes(void* p) { OnAccess(p, bytes); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
#undef ACCESS
#define ATOMIC(bits, T)                                            \
  T __tsan_atomic##bits##_load(const volatile T* p, int) {         \
    OnAccess(const_cast<const T*>(p), sizeof(T));                  \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                   \
  }                                                                \
  void __tsan_atomic##bits##_store(volatile T* p, T value, int) {  \
    OnAccess(const_cast<const T*>(p), sizeof(T));                  \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                  \
  }                                                                \
  T __tsan_atomic##bits##_exchange(volatile T* p, T value, int) {  \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);        \
  }                                                                \
  T __tsan_atomic##bits##_fetch_add(volatile T* p, T value, int) { \
    return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST);         \
  }
ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
#undef ATOMIC
}
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses)

namespace rocegw::testing::touched_lines {
namespace {

constexpr size_t kChannelLines = 2;  // what it is while it rests
constexpr size_t kAwakeLines = 6;    // what it has on top; all that there are
constexpr size_t kQueuePairLines = 18;

// Bytes of the object itself, as its maker allocates it.
size_t QueuePairBytes() {
  const size_t before = block_count;
  inside = true;
  const auto qp = transport::MakeReadyQueuePair({});
  inside = false;
  return blocks[before].size;
}

TEST(TouchedLines, SteadyState_ChannelAndQueuePair) {
  const size_t qp_bytes = QueuePairBytes();
  std::map<size_t, std::set<uintptr_t>> lines;
  touched = &lines;
  StateWorld world(4, 2);
  world.Watch([](bool in) { inside = in; });
  for (uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(world.Connect(i, 0));
  for (int round = 0; round < 16; ++round) ASSERT_TRUE(world.Exchange(0, 4));
  watching = true;
  ASSERT_TRUE(world.Exchange(1, 1));
  watching = false;
  for (const auto& [size, of_size] : lines)
    std::printf("blocks of %zu bytes: %zu lines\n", size, of_size.size());
  const size_t channel = lines[sizeof(channel::Channel)].size();
  const size_t awake = lines[sizeof(channel::AwakeChannel)].size();
  const size_t qp = lines[qp_bytes].size();
  RecordProperty("channel_lines", static_cast<int>(channel));
  RecordProperty("queue_pair_lines", static_cast<int>(qp));
  RecordProperty("awake_lines", static_cast<int>(awake));
  std::printf(
      "a SEND and a WRITE each way touch %zu and %zu lines of the channel, %zu of the queue pair\n",
      channel, awake, qp);
  EXPECT_GT(channel, 0u);
  EXPECT_GT(qp, 0u);
  EXPECT_GT(awake, 0u);
  EXPECT_LE(channel, kChannelLines);
  EXPECT_LE(awake, kAwakeLines);
  EXPECT_LE(qp, kQueuePairLines);
}

}  // namespace
}  // namespace rocegw::testing::touched_lines
