// SPDX-License-Identifier: Apache-2.0
// Counts the cache lines of channel and queue pair that a message touches in steady state. The
// sources of verbs, flow, channel, transport and worker are compiled again for this program, with a
// call for every memory access (as ThreadSanitizer's instrumentation emits; the called functions
// are the ones below). Lines are counted in the blocks that the worker under test has allocated.
// The test prints the touched bytes of each line; gdb names their members: ptype /o
// 'rocegw::transport::(anonymous namespace)::RcQueuePair'.
#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "gateway/transport/queue_pair.h"
#include "tests/support/session/state_world.h"

namespace {

constexpr uintptr_t kLine = 64;

// Identifies the blocks of one class of objects.
struct Kind {
  size_t size;
  size_t alignment;
  auto operator<=>(const Kind&) const = default;
};
template <typename T>
constexpr Kind kKindOf{sizeof(T), std::max(alignof(T), alignof(std::max_align_t))};

struct Block {
  uintptr_t base;
  Kind kind;
};
// Blocks of the worker under test, in order of allocation.
Block blocks[1 << 16];
size_t block_count = 0;
bool inside = false;    // the worker under test runs
bool watching = false;  // its accesses are counted
// Bytes of a block that one access touched.
struct Bytes {
  size_t block;  // index of the block
  uintptr_t begin;
  uintptr_t end;
  auto operator<=>(const Bytes&) const = default;
};
using Touches = std::map<Kind, std::set<Bytes>>;
Touches* touched = nullptr;

void OnAccess(const void* pointer, size_t size) {
  if (!inside || !watching) return;
  const auto at = reinterpret_cast<uintptr_t>(pointer);
  for (size_t i = 0; i < block_count; ++i) {
    const Block& block = blocks[i];
    if (at < block.base || at >= block.base + block.kind.size) continue;
    inside = false;  // excludes this bookkeeping itself
    (*touched)[block.kind].insert({i, at - block.base, at - block.base + size});
    inside = true;
    return;
  }
}

void* Allocate(size_t size, size_t alignment = alignof(std::max_align_t)) {
  void* const pointer = std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  if (pointer == nullptr) std::abort();
  if (inside && block_count < std::size(blocks))
    blocks[block_count++] = {reinterpret_cast<uintptr_t>(pointer), {size, alignment}};
  return pointer;
}

void Free(void* pointer) {
  // By any thread: the address may be reused by another block.
  for (size_t i = block_count; i > 0; --i) {
    if (blocks[i - 1].base != reinterpret_cast<uintptr_t>(pointer)) continue;
    blocks[i - 1].kind.size = 0;
    break;
  }
  std::free(pointer);
}

}  // namespace

void* operator new(size_t size) { return Allocate(size); }
void* operator new[](size_t size) { return Allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* pointer, std::align_val_t) noexcept { Free(pointer); }
void operator delete(void* pointer, size_t, std::align_val_t) noexcept { Free(pointer); }
void operator delete(void* pointer) noexcept { Free(pointer); }
void operator delete[](void* pointer) noexcept { Free(pointer); }
void operator delete(void* pointer, size_t) noexcept { Free(pointer); }
void operator delete[](void* pointer, size_t) noexcept { Free(pointer); }

// Functions that instrumented code calls.
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
#define ATOMIC(bits, T)                                                                            \
  T __tsan_atomic##bits##_load(const volatile T* p, int) {                                         \
    OnAccess(const_cast<const T*>(p), sizeof(T));                                                  \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile T* p, T value, int) {                                  \
    OnAccess(const_cast<const T*>(p), sizeof(T));                                                  \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  T __tsan_atomic##bits##_exchange(volatile T* p, T value, int) {                                  \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_add(volatile T* p, T value, int) {                                 \
    return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST);                                         \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_sub(volatile T* p, T value, int) {                                 \
    return __atomic_fetch_sub(p, value, __ATOMIC_SEQ_CST);                                         \
  }                                                                                                \
  T __tsan_atomic##bits##_fetch_or(volatile T* p, T value, int) {                                  \
    return __atomic_fetch_or(p, value, __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected, T value, int,      \
                                                    int) {                                         \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,                \
                                       __ATOMIC_SEQ_CST);                                          \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* expected, T value, int, int) { \
    return __atomic_compare_exchange_n(p, expected, value, true, __ATOMIC_SEQ_CST,                 \
                                       __ATOMIC_SEQ_CST);                                          \
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

// A number for which no table of the worker has the size of a channel.
constexpr uint32_t kQueuePairs = 5;

constexpr size_t kChannelLines = 2;  // channel at rest
constexpr size_t kAwakeLines = 3;    // additional lines while awake
constexpr size_t kQueuePairLines = 5;
constexpr size_t kNativeLines = 11;   // queue pair towards a native peer
constexpr size_t kSenderLines = 10;   // that only sends WRITEs
constexpr size_t kReceiverLines = 6;  // that only receives WRITEs

// Size of the object as allocated by its factory.
Kind QueuePairKind() {
  const size_t before = block_count;
  inside = true;
  auto qp = transport::MakeReadyQueuePair({});
  const Kind kind = blocks[before].kind;
  qp.reset();
  inside = false;
  return kind;
}

// Counts lines, assuming that blocks begin at one; prints the touched bytes.
size_t LinesOf(const char* what, const std::set<Bytes>& touches) {
  std::map<std::pair<size_t, uintptr_t>, std::map<uintptr_t, uintptr_t>> lines;
  for (const Bytes& bytes : touches) {
    for (uintptr_t at = bytes.begin; at < bytes.end;) {
      const uintptr_t end = std::min((at / kLine + 1) * kLine, bytes.end);
      std::map<uintptr_t, uintptr_t>& runs = lines[{bytes.block, at / kLine}];
      const auto before = runs.upper_bound(at);
      if (before != runs.begin() && std::prev(before)->second >= at) {
        std::prev(before)->second = std::max(std::prev(before)->second, end);
      } else {
        runs[at] = end;
      }
      at = end;
    }
  }
  std::printf("%s: %zu lines\n", what, lines.size());
  for (const auto& [line, runs] : lines) {
    std::printf("  block %zu line %2zu:", line.first, line.second);
    for (const auto& [begin, end] : runs) std::printf(" %zu-%zu", begin, end - 1);
    std::printf("\n");
  }
  return lines.size();
}

// Counts the accesses of a SEND and a WRITE in each direction over one of several queue pairs.
void Exchange(StateWorld& world, Touches& touches) {
  touched = &touches;
  world.Watch([](bool in) { inside = in; });
  for (uint32_t i = 0; i < kQueuePairs; ++i) ASSERT_TRUE(world.Connect(i, 0));
  for (int round = 0; round < 16; ++round) ASSERT_TRUE(world.Exchange(0, kQueuePairs));
  watching = true;
  ASSERT_TRUE(world.Exchange(1, 1));
  // Until everything is acknowledged.
  world.Rest(Microseconds(320));
  watching = false;
}

TEST(TouchedLines, SteadyState_NativeQueuePair) {
  const Kind qp_kind = QueuePairKind();
  StateWorld world(kQueuePairs, 2);
  world.UseNative();
  Touches touches;
  Exchange(world, touches);
  const size_t qp = LinesOf("queue pair without a channel", touches[qp_kind]);
  RecordProperty("native_queue_pair_lines", static_cast<int>(qp));
  EXPECT_GT(qp, 0u);
  EXPECT_LE(qp, kNativeLines);
}

// Counts the lines of native queue pairs that only WRITEs of the given side touch.
size_t LinesOfWrite(int side, const char* what) {
  const Kind qp_kind = QueuePairKind();
  StateWorld world(kQueuePairs, 2);
  world.UseNative();
  world.Watch([](bool in) { inside = in; });
  for (uint32_t i = 0; i < kQueuePairs; ++i) EXPECT_TRUE(world.Connect(i, 0));
  for (int round = 0; round < 4; ++round) EXPECT_TRUE(world.Write(side, 1));
  world.Rest(Milliseconds(20));
  Touches touches;
  touched = &touches;
  watching = true;
  EXPECT_TRUE(world.Write(side, 1));
  world.Rest(Milliseconds(20));
  watching = false;
  const size_t lines = LinesOf(what, touches[qp_kind]);
  EXPECT_GT(lines, 0u);
  for (const auto& [kind, of_kind] : touches)
    if (kind != qp_kind)
      LinesOf(("blocks of " + std::to_string(kind.size) + " bytes").c_str(), of_kind);
  return lines;
}

TEST(TouchedLines, WriteOverNativeQueuePair_LinesOfSender) {
  EXPECT_LE(LinesOfWrite(0, "queue pair that sends a WRITE"), kSenderLines);
}

TEST(TouchedLines, WriteOverNativeQueuePair_LinesOfReceiver) {
  EXPECT_LE(LinesOfWrite(1, "queue pair that receives a WRITE"), kReceiverLines);
}

TEST(TouchedLines, SteadyState_ChannelAndQueuePair) {
  const Kind qp_kind = QueuePairKind();
  StateWorld world(kQueuePairs, 2);
  Touches touches;
  Exchange(world, touches);
  const Kind kinds[] = {kKindOf<channel::Channel>, kKindOf<channel::AwakeChannel>, qp_kind};
  const size_t channel = LinesOf("channel", touches[kinds[0]]);
  const size_t awake = LinesOf("its block", touches[kinds[1]]);
  const size_t qp = LinesOf("queue pair", touches[kinds[2]]);
  // Each kind once.
  for (const Kind& kind : kinds) {
    ASSERT_FALSE(touches[kind].empty());
    EXPECT_EQ(touches[kind].begin()->block, touches[kind].rbegin()->block);
  }
  for (const auto& [kind, of_kind] : touches) {
    if (std::ranges::find(kinds, kind) != std::end(kinds)) continue;
    LinesOf(("blocks of " + std::to_string(kind.size) + " bytes").c_str(), of_kind);
  }
  RecordProperty("channel_lines", static_cast<int>(channel));
  RecordProperty("queue_pair_lines", static_cast<int>(qp));
  RecordProperty("awake_lines", static_cast<int>(awake));
  std::printf(
      "a SEND and a WRITE each way touch %zu and %zu lines of the channel, %zu of the queue pair\n",
      channel, awake, qp);
  EXPECT_LE(channel, kChannelLines);
  EXPECT_LE(awake, kAwakeLines);
  EXPECT_LE(qp, kQueuePairLines);
}

}  // namespace
}  // namespace rocegw::testing::touched_lines
