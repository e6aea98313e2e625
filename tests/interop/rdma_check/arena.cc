// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

void FillPattern(uint64_t seed, uint64_t from, uint8_t* out, size_t length) {
  uint64_t position = from;
  while (length > 0) {
    const uint64_t word = Mix(seed ^ Mix(position / 8));
    const size_t skip = position % 8;
    const size_t take = std::min(length, 8 - skip);
    std::memcpy(out, reinterpret_cast<const uint8_t*>(&word) + skip, take);
    out += take;
    position += take;
    length -= take;
  }
}

Arena::Arena(uint64_t seed) : model_(kSize) {
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CheckErrno(memory != MAP_FAILED, "mmap");
  memory_ = static_cast<uint8_t*>(memory);
  FillPattern(~seed, 0, model_.data(), kSize);
  std::memcpy(memory_, model_.data(), kSize);
}

Arena::~Arena() { munmap(memory_, kSize); }

void Arena::Fill(const std::vector<Piece>& pieces, uint64_t seed) {
  uint64_t position = 0;
  for (const Piece& piece : pieces) {
    FillPattern(seed, position, model_.data() + piece.offset, piece.length);
    std::memcpy(memory_ + piece.offset, model_.data() + piece.offset, piece.length);
    position += piece.length;
  }
}

void Arena::Expect(const std::vector<Piece>& pieces, uint64_t seed, size_t length) {
  uint64_t position = 0;
  for (const Piece& piece : pieces) {
    const size_t part = std::min<size_t>(piece.length, length - position);
    FillPattern(seed, position, model_.data() + piece.offset, part);
    position += part;
  }
}

void Arena::SetWord(uint32_t offset, uint64_t value) {
  std::memcpy(memory_ + offset, &value, sizeof value);
  ExpectWord(offset, value);
}

void Arena::ExpectWord(uint32_t offset, uint64_t value) {
  std::memcpy(model_.data() + offset, &value, sizeof value);
}

void Arena::Accept(const Piece& piece) {
  std::memcpy(model_.data() + piece.offset, memory_ + piece.offset, piece.length);
}

uint64_t Arena::word(uint32_t offset) const {
  uint64_t value;
  std::memcpy(&value, memory_ + offset, sizeof value);
  return value;
}

void Arena::Verify(const char* when) const {
  if (std::memcmp(memory_, model_.data(), kSize) == 0) return;
  size_t first = 0;
  while (memory_[first] == model_[first]) ++first;
  size_t wrong = 0;
  for (size_t i = first; i < kSize; ++i) wrong += memory_[i] != model_[i] ? 1 : 0;
  Fail("memory differs ", when, ": first at offset ", first, ", is ", int{memory_[first]},
       ", must be ", int{model_[first]}, "; ", wrong, " bytes differ");
}

Piece Layout::Take(uint32_t length, uint32_t alignment) {
  next_ += 64 + random_() % 64;
  next_ = (next_ + alignment - 1) / alignment * alignment;
  const Piece piece{.offset = static_cast<uint32_t>(next_), .length = length};
  next_ += length;
  Check(next_ + 64 <= Arena::kSize, "case needs more than the arena");
  return piece;
}

std::vector<Piece> Layout::TakeSplit(uint32_t length, uint32_t pieces) {
  std::vector<Piece> result;
  for (uint32_t left = pieces; left > 0; --left) {
    const uint32_t part =
        left == 1 ? length : static_cast<uint32_t>(random_() % (uint64_t{length} + 1));
    result.push_back(Take(part));
    length -= part;
  }
  return result;
}

}  // namespace rocegw::interop
