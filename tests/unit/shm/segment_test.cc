// SPDX-License-Identifier: Apache-2.0
#include "gateway/shm/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "gateway/hand_over/state_stream.h"
#include "tests/support/random.h"

namespace rocegw::shm {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(Arena, Take_RoundsUpToLinesAndFillsTheSmallestHole) {
  Arena arena;
  arena.AddChunk(0, 4096);
  const auto a = arena.Take(1);
  const auto b = arena.Take(65);
  const auto c = arena.Take(64);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->length, 64u);
  EXPECT_EQ(b->length, 128u);
  EXPECT_EQ(b->offset, 64u);
  EXPECT_EQ(c->offset, 192u);
  ASSERT_TRUE(arena.Give(*a));
  EXPECT_EQ(arena.Take(64)->offset, 0u);
}

TEST(Arena, Take_NothingForZeroOrMoreThanThereIs) {
  Arena arena;
  arena.AddChunk(0, 4096);
  EXPECT_FALSE(arena.Take(0));
  EXPECT_FALSE(arena.Take(4097));
  EXPECT_FALSE(arena.Take(~uint64_t{0}));
  EXPECT_TRUE(arena.Take(4096));
  EXPECT_FALSE(arena.Take(1));
}

TEST(Arena, Give_TwiceIsRefused) {
  Arena arena;
  arena.AddChunk(0, 4096);
  const auto a = *arena.Take(256);
  const auto b = *arena.Take(256);
  EXPECT_TRUE(arena.Give(a));
  EXPECT_FALSE(arena.Give(a));
  EXPECT_FALSE(arena.Give({0, a.offset + 64, 64}));
  EXPECT_TRUE(arena.Give(b));
  EXPECT_EQ(arena.free_bytes(), 4096u);
}

TEST(Arena, Give_NeighboursBecomeOneAgain) {
  Arena arena;
  arena.AddChunk(0, 4096);
  arena.AddChunk(1, 4096);
  std::vector<ArenaBlock> blocks;
  while (const auto block = arena.Take(64)) blocks.push_back(*block);
  ASSERT_EQ(blocks.size(), 128u);
  testing::Random random(testing::TestSeed(3));
  while (!blocks.empty()) {
    const size_t i = random.Below(blocks.size());
    ASSERT_TRUE(arena.Give(blocks[i]));
    blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(i));
  }
  EXPECT_EQ(arena.fragments(), 2u);
  EXPECT_TRUE(arena.Take(4096));
  EXPECT_TRUE(arena.Take(4096));
}

// Random allocations and frees, compared with a map of allocated blocks.
TEST(Arena, RandomUse_BlocksNeverOverlap) {
  testing::Random random(testing::TestSeed(4));
  Arena arena;
  arena.AddChunk(0, 64 * 1024);
  std::map<uint64_t, uint64_t> taken;
  uint64_t used = 0;
  for (int step = 0; step < 20000; ++step) {
    if (random.Coin() || taken.empty()) {
      const auto block = arena.Take(random.Between(1, 4000));
      if (!block) continue;
      const auto next = taken.lower_bound(block->offset);
      if (next != taken.end()) {
        ASSERT_LE(block->offset + block->length, next->first);
      }
      if (next != taken.begin()) {
        ASSERT_LE(std::prev(next)->first + std::prev(next)->second, block->offset);
      }
      ASSERT_EQ(block->offset % 64, 0u);
      taken[block->offset] = block->length;
      used += block->length;
    } else {
      auto it = taken.begin();
      std::advance(it, random.Below(taken.size()));
      ASSERT_TRUE(arena.Give({0, it->first, it->second}));
      used -= it->second;
      taken.erase(it);
    }
    ASSERT_EQ(arena.free_bytes(), 64 * 1024 - used);
  }
}

TEST(Chunk, Seals_NobodyCanResizeOrUnseal) {
  for (const Writer writer : {Writer::kClient, Writer::kDaemon}) {
    auto chunk = Chunk::Create(2 * kMiB, writer);
    ASSERT_TRUE(chunk.ok()) << chunk.status().text();
    const int fd = (*chunk)->fd();
    EXPECT_EQ(::ftruncate(fd, 4096), -1);
    EXPECT_EQ(::ftruncate(fd, 4 * kMiB), -1);
    EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  }
}

// Missing memory is reported when a block is allocated, not when it is written.
TEST(Chunk, Populate_TakesThePagesAtOnce) {
  auto chunk = Chunk::Create(2 * kMiB, Writer::kDaemon);
  ASSERT_TRUE(chunk.ok());
  const auto taken = [&] {
    struct stat now {};
    EXPECT_EQ(::fstat((*chunk)->fd(), &now), 0);
    return now.st_blocks * 512;
  };
  EXPECT_EQ(taken(), 0);
  ASSERT_TRUE((*chunk)->Populate(kMiB, 64 * 1024).ok());
  EXPECT_EQ(taken(), 64 * 1024);
  EXPECT_EQ((*chunk)->base()[kMiB], 0);
}

TEST(Chunk, DaemonWrites_ClientCannotMapOrWriteOrPunch) {
  auto chunk = Chunk::Create(2 * kMiB, Writer::kDaemon);
  ASSERT_TRUE(chunk.ok());
  const int fd = (*chunk)->fd();
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(::pwrite(fd, "x", 1, 0), -1);
  EXPECT_EQ(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  void* view = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(view, MAP_FAILED);
  EXPECT_EQ(::mprotect(view, 4096, PROT_READ | PROT_WRITE), -1);
  // A second descriptor of the same file, opened for writing, does not help either.
  const UniqueFd again(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDWR | O_CLOEXEC));
  if (again.valid()) {
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0),
              MAP_FAILED);
  }
  (*chunk)->base()[7] = 42;
  EXPECT_EQ(static_cast<uint8_t*>(view)[7], 42);
  ::munmap(view, 4096);
}

TEST(Chunk, ClientWrites_BothSeeTheSameBytes) {
  auto chunk = Chunk::Create(2 * kMiB, Writer::kClient);
  ASSERT_TRUE(chunk.ok());
  void* view = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, (*chunk)->fd(), 0);
  ASSERT_NE(view, MAP_FAILED);
  static_cast<uint8_t*>(view)[9] = 43;
  EXPECT_EQ((*chunk)->base()[9], 43);
  ::munmap(view, 4096);
}

TEST(Segment, Allocate_ArenasAreSeparateChunksThatDouble) {
  Segment segment(64 * kMiB);
  const auto mine = segment.Allocate(Writer::kDaemon, 100);
  const auto theirs = segment.Allocate(Writer::kClient, 100);
  ASSERT_TRUE(mine.ok() && theirs.ok());
  EXPECT_NE(mine.value().chunk, theirs.value().chunk);
  EXPECT_EQ(segment.chunk(mine.value().chunk).writer(), Writer::kDaemon);
  EXPECT_EQ(segment.chunk(theirs.value().chunk).writer(), Writer::kClient);
  EXPECT_EQ(segment.bytes(), 4 * kMiB);
  const auto second = segment.Allocate(Writer::kClient, 2 * kMiB);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(segment.chunk(second.value().chunk).size(), 4 * kMiB);
  EXPECT_EQ(segment.bytes(), 8 * kMiB);
}

TEST(Segment, Allocate_BlockLargerThanTheNextChunkGetsItsOwn) {
  Segment segment(64 * kMiB);
  const auto block = segment.Allocate(Writer::kClient, 9 * kMiB);
  ASSERT_TRUE(block.ok());
  EXPECT_EQ(segment.bytes(), 16 * kMiB);
  std::memset(block.value().address, 1, 9 * kMiB);
}

TEST(Segment, Allocate_LimitIsEnomemAndTakesNothing) {
  Segment segment(3 * kMiB);
  ASSERT_TRUE(segment.Allocate(Writer::kClient, 64).ok());
  const auto refused = segment.Allocate(Writer::kDaemon, 64);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().error(), ENOMEM);
  EXPECT_EQ(segment.bytes(), 2 * kMiB);
  EXPECT_EQ(segment.chunk_count(), 1u);
  EXPECT_EQ(segment.Allocate(Writer::kClient, 0).status().error(), ENOMEM);
  EXPECT_EQ(segment.Allocate(Writer::kClient, uint64_t{1} << 32).status().error(), ENOMEM);
}

TEST(Segment, Allocate_LastChunksAreSmaller_SoThatTheBoundIsUsed) {
  Segment segment(13 * kMiB);
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(segment.Allocate(Writer::kClient, kMiB).ok()) << i;
  EXPECT_EQ(segment.bytes(), 12 * kMiB) << "2, 4, then 4 instead of 8, and 2";
  EXPECT_EQ(segment.Allocate(Writer::kClient, kMiB).status().error(), ENOMEM);
}

TEST(Segment, Free_GivesBackAllThatARoundedBlockTook) {
  Segment segment(2 * kMiB);
  for (const uint64_t bytes : {1u, 63u, 64u, 65u, 4097u}) {
    auto block = segment.Allocate(Writer::kClient, bytes);
    ASSERT_TRUE(block.ok()) << bytes;
    segment.Free(*block);
    auto whole = segment.Allocate(Writer::kClient, 2 * kMiB);
    ASSERT_TRUE(whole.ok()) << bytes;
    segment.Free(*whole);
  }
}

TEST(Segment, Allocate_ReusedMemoryIsZeroAgain) {
  for (const Writer writer : {Writer::kClient, Writer::kDaemon}) {
    Segment segment(64 * kMiB);
    auto first = segment.Allocate(writer, 4096);
    ASSERT_TRUE(first.ok());
    Block block = *first;
    uint8_t* const address = block.address;
    std::memset(address, 0xAB, 4096);
    segment.Free(block);
    EXPECT_FALSE(block.valid());
    // The second block covers the used memory and some of the fresh memory behind it.
    const auto again = segment.Allocate(writer, 8192);
    ASSERT_TRUE(again.ok());
    ASSERT_EQ(again.value().address, address);
    for (size_t i = 0; i < 8192; ++i) ASSERT_EQ(again.value().address[i], 0) << i;
  }
}

TEST(Segment, Free_InvalidBlockIsIgnored) {
  Segment segment(64 * kMiB);
  Block none;
  segment.Free(none);
  EXPECT_EQ(segment.bytes(), 0u);
}

TEST(Chunk, Populate_BringsPagesOfWhatIsNear) {
  auto chunk = Chunk::Create(kMiB, Writer::kClient);
  ASSERT_TRUE(chunk.ok());
  const auto bytes = [&] {
    struct stat now;
    EXPECT_EQ(fstat((*chunk)->fd(), &now), 0);
    return static_cast<uint64_t>(now.st_blocks) * 512;
  };
  EXPECT_EQ(bytes(), 0u);
  ASSERT_TRUE((*chunk)->Populate(4096, 64).ok());
  EXPECT_EQ(bytes(), 65536u);
  ASSERT_TRUE((*chunk)->Populate(60000, 5536).ok());
  EXPECT_EQ(bytes(), 65536u) << "they are there";
  ASSERT_TRUE((*chunk)->Populate(3 * 65536 - 1, 2).ok());
  EXPECT_EQ(bytes(), 3 * 65536u);
  ASSERT_TRUE((*chunk)->Populate(0, kMiB).ok());
  EXPECT_EQ(bytes(), kMiB);
}

// A gateway that takes over writes the memory; its client cannot.
TEST(Chunk, ForSuccessor_ClientsDescriptorIsReadOnly_AndASuccessorWrites) {
  auto chunk = Chunk::Create(2 * kMiB, Writer::kDaemon, Sealing::kForSuccessor);
  ASSERT_TRUE(chunk.ok()) << chunk.status().text();
  const int client = (*chunk)->client_fd();
  ASSERT_NE(client, (*chunk)->fd());
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, client, 0), MAP_FAILED);
  EXPECT_EQ(::pwrite(client, "x", 1, 0), -1);
  EXPECT_EQ(::fallocate(client, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
  EXPECT_EQ(::ftruncate(client, 4096), -1);
  auto* const view = static_cast<uint8_t*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, client, 0));
  ASSERT_NE(view, MAP_FAILED);
  EXPECT_EQ(::mprotect(view, 4096, PROT_READ | PROT_WRITE), -1);
  struct stat file {};
  ASSERT_EQ(::fstat(client, &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0400u);

  auto successor = Chunk::Adopt(UniqueFd(::dup((*chunk)->fd())), 2 * kMiB, Writer::kDaemon);
  ASSERT_TRUE(successor.ok()) << successor.status().text();
  (*successor)->base()[7] = 42;
  EXPECT_EQ(view[7], 42);
  ::munmap(view, 4096);
}

TEST(Chunk, WhatIsNoChunkOfThatSize_IsNotAdopted) {
  auto chunk = Chunk::Create(2 * kMiB, Writer::kDaemon, Sealing::kForSuccessor);
  ASSERT_TRUE(chunk.ok());
  const auto error = [](int fd, uint64_t size) {
    return Chunk::Adopt(UniqueFd(::dup(fd)), size, Writer::kDaemon).status().error();
  };
  EXPECT_EQ(error((*chunk)->fd(), kMiB), EPROTO);
  const UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kMiB), 0);
  EXPECT_EQ(error(unsealed.get(), kMiB), EPROTO);
  auto forever = Chunk::Create(2 * kMiB, Writer::kDaemon);
  ASSERT_TRUE(forever.ok());
  EXPECT_EQ(error((*forever)->fd(), 2 * kMiB), EPERM);
}

class SegmentHandOver : public ::testing::Test {
 protected:
  static std::vector<uint8_t> StateOf(Segment& segment) {
    std::vector<uint8_t> bytes;
    const hand_over::StateVersions versions;
    hand_over::StateStream out(bytes, TimePoint(), versions);
    segment.HandOver(out, {});
    EXPECT_TRUE(out.ok()) << out.failure();
    return bytes;
  }
  static std::string Read(Segment& from, const std::vector<uint8_t>& state, Segment& into) {
    hand_over::StateStream in(state, TimePoint());
    into.HandOver(in, [&](uint32_t chunk) { return UniqueFd(::dup(from.chunk(chunk).fd())); });
    return in.ok() ? "" : in.failure();
  }
};

TEST_F(SegmentHandOver, BlocksAreTheSameMemory_AndFreeMemoryIsClear) {
  Segment old(64 * kMiB, nullptr, Sealing::kForSuccessor);
  Block kept = old.Allocate(Writer::kClient, 1000).value();
  Block gone = old.Allocate(Writer::kClient, 4096).value();
  Block lines = old.Allocate(Writer::kDaemon, 64).value();
  std::memset(kept.address, 1, kept.length);
  std::memset(gone.address, 2, gone.length);
  lines.address[0] = 3;
  old.Free(gone);
  Segment fresh(64 * kMiB, nullptr, Sealing::kForSuccessor);
  ASSERT_EQ(Read(old, StateOf(old), fresh), "");
  EXPECT_EQ(fresh.bytes(), old.bytes());
  Block again = kept;
  ASSERT_TRUE(fresh.Adopt(again, Writer::kClient));
  EXPECT_NE(again.address, kept.address);
  EXPECT_EQ(again.address[999], 1);
  Block twice = kept;
  EXPECT_FALSE(fresh.Adopt(twice, Writer::kClient));
  Block other = lines;
  EXPECT_FALSE(fresh.Adopt(other, Writer::kClient));
  ASSERT_TRUE(fresh.Adopt(lines, Writer::kDaemon));
  EXPECT_EQ(lines.address[0], 3);
  // The next block takes the place of the freed one.
  const Block next = fresh.Allocate(Writer::kClient, 4096).value();
  EXPECT_EQ(next.address[0], 0);
  EXPECT_EQ(next.address[4095], 0);
  EXPECT_NE(next.offset, kept.offset);
}

TEST_F(SegmentHandOver, MemoryThatIsSealedForEver_IsRefused) {
  Segment old(64 * kMiB);
  std::vector<uint8_t> bytes;
  const hand_over::StateVersions versions;
  hand_over::StateStream out(bytes, TimePoint(), versions);
  old.HandOver(out, {});
  EXPECT_STREQ(out.failure(), "shared memory is sealed for ever");
}

TEST(Arena, TakeAt_TakesExactlyThatBlock) {
  Arena arena;
  arena.AddChunk(0, 1024);
  EXPECT_TRUE(arena.TakeAt({0, 256, 100}));
  EXPECT_EQ(arena.free_bytes(), 1024u - 128);
  EXPECT_FALSE(arena.TakeAt({0, 320, 64}));
  EXPECT_FALSE(arena.TakeAt({0, 192, 128}));
  EXPECT_FALSE(arena.TakeAt({0, 960, 65}));
  EXPECT_FALSE(arena.TakeAt({1, 0, 64}));
  EXPECT_FALSE(arena.TakeAt({0, 10, 64}));
  EXPECT_TRUE(arena.TakeAt({0, 0, 256}));
  EXPECT_TRUE(arena.TakeAt({0, 384, 640}));
  EXPECT_EQ(arena.free_bytes(), 0u);
  EXPECT_TRUE(arena.Give({0, 256, 128}));
}

}  // namespace
}  // namespace rocegw::shm
