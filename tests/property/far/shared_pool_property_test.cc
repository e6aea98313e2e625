// SPDX-License-Identifier: Apache-2.0
// Requests of several processes at one donor of a shared block pool, in pieces and in any order.
// Processes die between any two pieces; pieces of dead ones may still arrive, late. Model: what was
// put, when each put began and when it was acknowledged. A get returns no value that was replaced
// or removed before the get began, and never a byte that was not put under its key.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/support/random.h"
#include "tests/unit/far/pool/fake_table.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

// Put, or removal, of a key.
struct Change {
  uint32_t key = 0;
  uint64_t begun = 0;
  uint64_t acknowledged = kNever;
};

enum class Kind : uint8_t { kPut, kGet, kRemove };

// A request of a process.
struct Running {
  Kind kind = Kind::kGet;
  uint32_t key = 0;
  uint64_t begun = 0;
  uint64_t change = 0;  // in the list of changes
  StepBuffers buffers{};
  std::vector<uint8_t> value;
  std::unique_ptr<Steps> steps;
  std::vector<Command> commands;  // commands of the round
  std::vector<uint32_t> done;     // bytes, by command
  bool dead = false;
};

// 8 bytes of key, then the number of the change over and over.
std::vector<uint8_t> ValueOf(uint32_t key, uint64_t change) {
  std::vector<uint64_t> words(2 + change % 20, change);
  words[0] = key;
  std::vector<uint8_t> value(words.size() * sizeof(uint64_t));
  std::memcpy(value.data(), words.data(), value.size());
  return value;
}

class Pool {
 public:
  Pool(uint64_t seed, uint32_t keys) : random_(seed), keys_(keys) {}

  void Step() {
    now_++;
    if (running_.size() < 5 && random_.Below(4) == 0) Start();
    if (running_.empty()) return;
    const size_t number = random_.Below(running_.size());
    Running& running = *running_[number];
    if (!running.dead && random_.Below(400) == 0) running.dead = true;
    if (running.dead && random_.Below(20) == 0) {
      running_.erase(running_.begin() + static_cast<ptrdiff_t>(number));
      return;
    }
    if (RunPiece(running)) return;
    if (running.dead) return;
    const auto commands = running.steps->Next();
    running.commands.assign(commands.begin(), commands.end());
    running.done.assign(commands.size(), 0);
    if (!commands.empty()) return;
    End(running);
    running_.erase(running_.begin() + static_cast<ptrdiff_t>(number));
  }

  uint64_t hits() const { return hits_; }
  uint64_t busy() const { return busy_; }

 private:
  void Start() {
    auto running = std::make_unique<Running>();
    running->key = static_cast<uint32_t>(random_.Below(keys_));
    running->begun = now_;
    const uint64_t kind = random_.Below(20);
    running->kind = kind < 9 ? Kind::kPut : kind < 19 ? Kind::kGet : Kind::kRemove;
    const KeyHash key = HashOf(secret_, std::to_string(running->key));
    if (running->kind != Kind::kGet) {
      running->change = changes_.size();
      changes_.push_back({running->key, now_});
    }
    if (running->kind == Kind::kPut) {
      running->value = ValueOf(running->key, running->change);
      running->steps = std::make_unique<PutSteps>(
          table_.shape, key, running->buffers, secret_, running->value.data(),
          static_cast<uint32_t>(running->value.size()),
          secret_.HashValue(running->value.data(), running->value.size()));
    } else if (running->kind == Kind::kGet) {
      running->value.resize(4096);
      running->steps = std::make_unique<GetSteps>(table_.shape, key, running->buffers, secret_,
                                                  running->value.data(), 4096);
    } else {
      running->steps = std::make_unique<RemoveSteps>(table_.shape, key, running->buffers);
    }
    running_.push_back(std::move(running));
  }

  // Returns false when the round's commands are complete.
  bool RunPiece(Running& running) {
    std::vector<size_t> left;
    for (size_t each = 0; each < running.commands.size(); each++) {
      if (running.done[each] != running.commands[each].bytes) left.push_back(each);
    }
    if (left.empty()) return false;
    const size_t each = left[random_.Below(left.size())];
    const uint32_t most =
        random_.Below(3) == 0 ? 4096 : 8 * (1 + static_cast<uint32_t>(random_.Below(12)));
    running.done[each] = table_.RunPiece(running.commands[each], running.done[each], most);
    return true;
  }

  void End(Running& running) {
    const int64_t result = running.steps->result();
    busy_ += result == -EBUSY ? 1 : 0;
    if (running.kind != Kind::kGet) {
      // A put that found the bucket changed each time may have happened or not.
      if (result >= 0) changes_[running.change].acknowledged = now_;
      return;
    }
    ASSERT_TRUE(result > 0 || result == -ENOENT || result == -EBUSY) << result;
    if (result < 0) return;
    hits_++;
    running.value.resize(static_cast<size_t>(result));
    uint64_t words[2];
    ASSERT_GE(running.value.size(), sizeof words);
    std::memcpy(words, running.value.data(), sizeof words);
    ASSERT_LT(words[1], changes_.size());
    ASSERT_EQ(running.value, ValueOf(running.key, words[1])) << "wrong bytes";
    const Change& found = changes_[words[1]];
    for (const Change& later : changes_) {
      if (later.key != running.key) continue;
      ASSERT_FALSE(later.acknowledged < running.begun && found.acknowledged < later.begun)
          << "a value that was replaced before the get began";
    }
  }

  testing::Random random_;
  const uint32_t keys_;
  const PoolSecret secret_ = TestSecret();
  FakeTable table_{1};
  std::vector<std::unique_ptr<Running>> running_;
  std::vector<Change> changes_;
  uint64_t now_ = 0;
  uint64_t hits_ = 0;
  uint64_t busy_ = 0;
};

// Few keys race for one value; many keys evict each other and take entries from slow writers.
TEST(SharedPoolProperty, NoValueIsWrongOrStale) {
  const uint64_t seed = testing::TestSeed(61);
  for (const uint32_t keys : {1u, 3u, 20u, 60u}) {
    uint64_t hits = 0;
    for (uint64_t round = 0; round < 12; round++) {
      Pool pool(seed + round, keys);
      for (int step = 0; step < 20000 && !HasFatalFailure(); step++) pool.Step();
      hits += pool.hits();
      ASSERT_FALSE(HasFatalFailure()) << keys << " keys, seed " << seed + round;
    }
    EXPECT_GT(hits, 100u) << keys;
  }
}

}  // namespace
}  // namespace rocegw::far
