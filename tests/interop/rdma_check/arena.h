// SPDX-License-Identifier: Apache-2.0
// Arena: the memory a case works on, with a model of what it must contain. Everything outside the
// bytes an operation may touch keeps its first filling, so one comparison of the whole arena finds
// wrong data as well as stray writes. Patterns are a function of a seed and a position alone: both
// sides can compute what the other one sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace rocegw::interop {

// Writes length pattern bytes of a seed, from position `from` of the pattern on.
void FillPattern(uint64_t seed, uint64_t from, uint8_t* out, size_t length);

struct Piece {
  uint32_t offset = 0;
  uint32_t length = 0;
};

class Arena {
 public:
  static constexpr size_t kSize = size_t{2} << 20;

  explicit Arena(uint64_t seed);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uint8_t* at(uint32_t offset) { return memory_ + offset; }
  uint64_t address(uint32_t offset) const { return reinterpret_cast<uint64_t>(memory_) + offset; }

  // Writes the pattern of a seed into the pieces in turn, and into the model.
  void Fill(const std::vector<Piece>& pieces, uint64_t seed);
  // Overwrites the first length bytes of the pieces in the model only: what the device is expected
  // to write there.
  void Expect(const std::vector<Piece>& pieces, uint64_t seed, size_t length);
  void SetWord(uint32_t offset, uint64_t value);
  void ExpectWord(uint32_t offset, uint64_t value);
  // Takes what is in memory as right: bytes that the device may choose, checked by other means.
  void Accept(const Piece& piece);
  uint64_t word(uint32_t offset) const;
  // Throws Failure that names the first difference.
  void Verify(const char* when) const;

 private:
  uint8_t* memory_;
  std::vector<uint8_t> model_;
};

// Hands out pieces of an arena with guard gaps of random length between them. Both sides run one
// for each arena with the same seed, and so know each other's offsets.
class Layout {
 public:
  explicit Layout(uint64_t seed) : random_(seed) {}
  Piece Take(uint32_t length, uint32_t alignment = 1);
  std::vector<Piece> TakeSplit(uint32_t length, uint32_t pieces);

 private:
  std::mt19937_64 random_;
  uint64_t next_ = 64;
};

}  // namespace rocegw::interop
