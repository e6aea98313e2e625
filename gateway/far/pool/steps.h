// SPDX-License-Identifier: Apache-2.0
// Requests of a shared block pool at one donor, as sequences of READ, WRITE and compare-and-swap.
// The caller carries out the commands of a round, in any order, and asks for the next round when
// all have succeeded. Other processes may do the same at the same time, and may die or stop between
// any two commands: no value is ever wrong, and a value that was put replaces older ones. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gateway/far/pool/table.h"

namespace rocegw::far {

struct Command {
  enum class Kind : uint8_t { kRead, kWrite, kCompareSwap };
  Kind kind = Kind::kRead;
  uint64_t offset = 0;       // in the donor's memory
  uint8_t* local = nullptr;  // kCompareSwap: gets the 8 bytes that were there
  uint32_t bytes = 0;
  uint64_t expected = 0;  // kCompareSwap
  uint64_t desired = 0;   // kCompareSwap
};

// Memory that commands refer to. It outlives the commands.
struct StepBuffers {
  Bucket bucket;
  Entry body;
  uint64_t found;    // result of the compare-and-swap that matters
  uint64_t ignored;  // results of others
};

class Steps {
 public:
  virtual ~Steps() = default;
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  // Commands of the next round; none: the request has ended with result().
  std::span<const Command> Next();
  // Not negative: as each class says. Otherwise a negative errno; EBUSY: other processes changed
  // the bucket each time.
  int64_t result() const { return result_; }
  // Values of other keys that made room.
  uint32_t evicted() const { return evicted_; }

 protected:
  Steps(const TableShape& shape, const KeyHash& key, StepBuffers& buffers)
      : shape_(shape), key_(key), buffers_(buffers), bucket_(shape.BucketOf(key)) {}
  virtual void Advance() = 0;  // adds commands, or ends

  void ReadBucket();
  void CompareSwap(uint32_t way, uint64_t expected, uint64_t desired, uint64_t* found);
  // Makes the entry free, if its control word is still what the bucket says.
  void Free(uint32_t way, uint64_t* found);
  void End(int64_t result) { result_ = result; }
  // Counts rounds that have to be repeated. Returns false, and ends, when there were too many.
  bool MayRepeat();
  Bucket& bucket() { return buffers_.bucket; }

  const TableShape shape_;
  const KeyHash key_;
  StepBuffers& buffers_;
  const uint64_t bucket_;
  std::vector<Command> commands_;
  int64_t result_ = 0;
  uint32_t evicted_ = 0;

 private:
  uint32_t repeated_ = 0;
};

// Copies the bucket that the second half of the key names: 1.
class ScanSteps final : public Steps {
 public:
  ScanSteps(const TableShape& shape, const KeyHash& key, StepBuffers& buffers, Bucket& bucket)
      : Steps(shape, key, buffers), copy_(bucket) {}

 private:
  void Advance() override;

  Bucket& copy_;
  bool begun_ = false;
};

// Gets the value: its bytes. ENOENT: there is none. EMSGSIZE: the buffer is too small.
class GetSteps final : public Steps {
 public:
  GetSteps(const TableShape& shape, const KeyHash& key, StepBuffers& buffers,
           const PoolSecret& secret, uint8_t* value, uint64_t most_bytes, bool marks_use = true)
      : Steps(shape, key, buffers),
        secret_(secret),
        value_(value),
        most_bytes_(most_bytes),
        marks_use_(marks_use) {}

 private:
  enum class Stage : uint8_t { kBegin, kBucket, kValue, kForgotten };
  void Advance() override;
  void Choose();
  void Verify();

  const PoolSecret& secret_;
  uint8_t* const value_;
  const uint64_t most_bytes_;
  const bool marks_use_;  // the value counts as used
  Stage stage_ = Stage::kBegin;
  Entry entry_;  // that is being read
  uint32_t way_ = 0;
  uint64_t wrong_check_ = 0;  // check of the entry whose value was not right
  uint32_t torn_ = 0;
};

// kRestore: the value is one that another donor has. It counts as older than any that is put, and
// takes an entry that is free. The result is 0 when there is a value of the key, or no free entry.
enum class PutMode : uint8_t { kReplace, kRestore };

// Puts the value: its bytes. The value's bytes are hashed before.
class PutSteps final : public Steps {
 public:
  PutSteps(const TableShape& shape, const KeyHash& key, StepBuffers& buffers,
           const PoolSecret& secret, uint8_t* value, uint32_t bytes, uint64_t value_hash,
           PutMode mode = PutMode::kReplace)
      : Steps(shape, key, buffers),
        secret_(secret),
        value_(value),
        bytes_(bytes),
        value_hash_(value_hash),
        mode_(mode) {}

 private:
  enum class Stage : uint8_t { kBegin, kBucket, kClaimed, kWritten, kPublished, kTidy, kTidied };
  void Advance() override;
  void Claim();
  void Write();
  void Tidy();

  const PoolSecret& secret_;
  uint8_t* const value_;
  const uint32_t bytes_;
  const uint64_t value_hash_;
  const PutMode mode_;
  Stage stage_ = Stage::kBegin;
  uint32_t way_ = 0;
  uint64_t expected_ = 0;  // control word of the entry before
  Control claimed_;
  uint64_t sequence_ = 0;
  bool evicts_ = false;
};

// Removes the values of the key: 1, or 0 when there was none.
class RemoveSteps final : public Steps {
 public:
  RemoveSteps(const TableShape& shape, const KeyHash& key, StepBuffers& buffers)
      : Steps(shape, key, buffers) {}

 private:
  enum class Stage : uint8_t { kBegin, kBucket, kFreed };
  void Advance() override;

  Stage stage_ = Stage::kBegin;
  uint64_t freed_ = 0;  // control word that was to become free
  bool removed_ = false;
};

// Looks whether there is a value of the key: 1, or 0.
class FindSteps final : public Steps {
 public:
  FindSteps(const TableShape& shape, const KeyHash& key, StepBuffers& buffers)
      : Steps(shape, key, buffers) {}

 private:
  void Advance() override;

  bool begun_ = false;
};

}  // namespace rocegw::far
