// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/pool/steps.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "tests/unit/far/pool/fake_table.h"

namespace rocegw::far {
namespace {

class StepsTest : public ::testing::Test {
 protected:
  PutSteps PutOf(const std::string& key, std::string& value, StepBuffers& buffers,
                 PutMode mode = PutMode::kReplace) {
    auto* const bytes = reinterpret_cast<uint8_t*>(value.data());
    return {table_.shape,
            HashOf(secret_, key),
            buffers,
            secret_,
            bytes,
            static_cast<uint32_t>(value.size()),
            secret_.HashValue(bytes, value.size()),
            mode};
  }
  int64_t Restore(const std::string& key, std::string value) {
    StepBuffers buffers;
    PutSteps put = PutOf(key, value, buffers, PutMode::kRestore);
    const int64_t result = table_.RunAll(put);
    evicted_ += put.evicted();
    return result;
  }
  int64_t Put(const std::string& key, std::string value) {
    StepBuffers buffers;
    PutSteps put = PutOf(key, value, buffers);
    const int64_t result = table_.RunAll(put);
    evicted_ += put.evicted();
    return result;
  }
  // The value, or the error as "errno N".
  std::string Get(const std::string& key, uint64_t most = 4096) {
    StepBuffers buffers;
    std::string value(4096, 0);
    GetSteps get(table_.shape, HashOf(secret_, key), buffers, secret_,
                 reinterpret_cast<uint8_t*>(value.data()), most);
    const int64_t result = table_.RunAll(get);
    if (result < 0) return "errno " + std::to_string(-result);
    return value.substr(0, static_cast<size_t>(result));
  }
  bool Has(const std::string& key) {
    StepBuffers buffers;
    FindSteps find(table_.shape, HashOf(secret_, key), buffers);
    return table_.RunAll(find) == 1;
  }
  int64_t Remove(const std::string& key) {
    StepBuffers buffers;
    RemoveSteps remove(table_.shape, HashOf(secret_, key), buffers);
    return table_.RunAll(remove);
  }
  // Entry that has the key's value; the test ends when there is none.
  uint32_t WayOf(const std::string& key) {
    for (uint32_t way = 0; way < kWays; way++) {
      if (Holds(table_.EntryAt(0, way), HashOf(secret_, key))) return way;
    }
    ADD_FAILURE() << key << " is not there";
    return 0;
  }

  const PoolSecret secret_ = TestSecret();
  FakeTable table_{1};
  uint32_t evicted_ = 0;
  const std::string missing_ = "errno " + std::to_string(ENOENT);
};

TEST_F(StepsTest, AValueIsFoundAndReplaced) {
  EXPECT_EQ(Get("a"), missing_);
  EXPECT_EQ(Put("a", "first"), 5);
  EXPECT_EQ(Get("a"), "first");
  EXPECT_EQ(Put("a", "second"), 6);
  EXPECT_EQ(Get("a"), "second");
  EXPECT_TRUE(Has("a"));
  EXPECT_FALSE(Has("b"));
  EXPECT_EQ(evicted_, 0u);
}

TEST_F(StepsTest, ARestoredValueIsOlderThanAnyThatIsPut) {
  EXPECT_EQ(Restore("a", "restored"), 8);
  EXPECT_EQ(Get("a"), "restored");
  EXPECT_EQ(Put("a", "put"), 3);
  EXPECT_EQ(Get("a"), "put");
  EXPECT_EQ(Restore("a", "restored"), 0) << "there is a value";
  EXPECT_EQ(Get("a"), "put");
}

TEST_F(StepsTest, APutBesideARestoredValueWins) {
  std::string restored = "restored";
  StepBuffers buffers;
  PutSteps restore = PutOf("a", restored, buffers, PutMode::kRestore);
  // The restoring process has read the bucket, and has claimed an entry.
  for (int round = 0; round < 2; round++) {
    for (const Command& command : restore.Next()) table_.RunPiece(command, 0, command.bytes);
  }
  Put("a", "put");
  table_.RunAll(restore);
  EXPECT_EQ(Get("a"), "put");
  EXPECT_EQ(Remove("a"), 1);
  EXPECT_EQ(Get("a"), missing_);
}

TEST_F(StepsTest, ARestoredValueMakesNoRoomForItself) {
  for (uint32_t way = 0; way < kWays; way++) Put(std::to_string(way), "value");
  EXPECT_EQ(Restore("a", "restored"), 0);
  EXPECT_EQ(Get("a"), missing_);
  for (uint32_t way = 0; way < kWays; way++) EXPECT_EQ(Get(std::to_string(way)), "value");
  EXPECT_EQ(evicted_, 0u);
}

TEST_F(StepsTest, AValueThatIsReadToBeRestoredElsewhereDoesNotCountAsUsed) {
  for (uint32_t way = 0; way < kWays; way++) Put(std::to_string(way), "value");
  StepBuffers buffers;
  std::string value(4096, 0);
  GetSteps get(table_.shape, HashOf(secret_, "0"), buffers, secret_,
               reinterpret_cast<uint8_t*>(value.data()), value.size(), false);
  EXPECT_EQ(table_.RunAll(get), 5);
  Put("a", "value");
  EXPECT_EQ(Get("0"), missing_) << "the oldest value makes room";
}

TEST_F(StepsTest, AScanCopiesTheBucket) {
  Put("a", "value");
  StepBuffers buffers;
  Bucket bucket;
  ScanSteps scan(table_.shape, {0, 0}, buffers, bucket);
  EXPECT_EQ(table_.RunAll(scan), 1);
  EXPECT_TRUE(Latest(bucket, HashOf(secret_, "a")));
}

TEST_F(StepsTest, ABufferThatIsTooSmallIsRefused) {
  Put("a", "four");
  EXPECT_EQ(Get("a", 3), "errno " + std::to_string(EMSGSIZE));
  EXPECT_EQ(Get("a", 4), "four");
}

TEST_F(StepsTest, ARemovedValueIsMissing) {
  Put("a", "one");
  EXPECT_EQ(Remove("a"), 1);
  EXPECT_EQ(Remove("a"), 0);
  EXPECT_EQ(Get("a"), missing_);
}

TEST_F(StepsTest, TheValueThatWasNotUsedForLongestIsEvicted) {
  for (uint32_t key = 0; key < kWays; key++) Put(std::to_string(key), "value");
  EXPECT_EQ(Get("0"), "value");
  Put("new", "value");
  EXPECT_TRUE(Has("0") && Has("new"));
  EXPECT_FALSE(Has("1"));
  EXPECT_EQ(evicted_, 1u);
}

TEST_F(StepsTest, ANewValueOfAKeyEvictsNoOtherOneWhereItsOwnIsTheOldest) {
  for (uint32_t key = 0; key < kWays; key++) Put(std::to_string(key), "value");
  Put("0", "newer");
  EXPECT_EQ(evicted_, 0u);
  for (uint32_t key = 1; key < kWays; key++) EXPECT_TRUE(Has(std::to_string(key)));
  EXPECT_EQ(Get("0"), "newer");
}

TEST_F(StepsTest, AWriterThatDiedKeepsItsEntryOnlyUntilItIsTheOldest) {
  Put("a", "old");
  std::string value = "never published";
  StepBuffers buffers;
  PutSteps dies = PutOf("a", value, buffers);
  for (int round = 0; round < 3; round++) {  // bucket, claim, value and body
    for (const Command& command : dies.Next()) table_.RunPiece(command, 0, command.bytes);
  }
  EXPECT_EQ(Get("a"), "old");
  for (uint32_t key = 0; key < kWays; key++) Put(std::to_string(key), "value");
  uint32_t valid = 0;
  for (uint32_t way = 0; way < kWays; way++) {
    valid += Control::Decode(table_.EntryAt(0, way).control).state == EntryState::kValid ? 1 : 0;
  }
  EXPECT_EQ(valid, kWays);
}

TEST_F(StepsTest, ABlockThatWasOverwrittenIsMissingAndNeverWrong) {
  Put("a", "right");
  const uint32_t way = WayOf("a");
  table_.BlockAt(0, way)[0] = 'w';
  EXPECT_EQ(Get("a"), missing_);
  EXPECT_EQ(Control::Decode(table_.EntryAt(0, way).control).state, EntryState::kFree);
}

TEST_F(StepsTest, ABodyOfAnotherVersionIsNoValue) {
  Put("a", "right");
  table_.EntryAt(0, WayOf("a")).version++;
  EXPECT_EQ(Get("a"), missing_);
}

TEST_F(StepsTest, AnEntryOfImpossibleSizeIsNoValue) {
  Put("a", "right");
  table_.EntryAt(0, WayOf("a")).bytes = 4097;
  EXPECT_EQ(Get("a", 1 << 20), missing_);
}

TEST_F(StepsTest, AGetRemovesTheOlderValueThatADeadWriterLeft) {
  Put("a", "old");
  std::string value = "new";
  StepBuffers buffers;
  PutSteps dies = PutOf("a", value, buffers);
  for (int round = 0; round < 4; round++) {  // up to the publication
    for (const Command& command : dies.Next()) table_.RunPiece(command, 0, command.bytes);
  }
  EXPECT_EQ(Get("a"), "new");
  uint32_t valid = 0;
  for (uint32_t way = 0; way < kWays; way++) {
    valid += Holds(table_.EntryAt(0, way), HashOf(secret_, "a")) ? 1 : 0;
  }
  EXPECT_EQ(valid, 1u);
}

// Both writers have read the bucket before either claims an entry.
TEST_F(StepsTest, OfTwoWritersOfOneKeyOneStays) {
  std::string first = "first", second = "second";
  StepBuffers first_buffers, second_buffers;
  PutSteps one = PutOf("a", first, first_buffers);
  PutSteps other = PutOf("a", second, second_buffers);
  std::vector<Steps*> running{&one, &other};
  while (!running.empty()) {
    std::vector<std::vector<Command>> rounds;
    for (Steps* steps : running) {
      const auto commands = steps->Next();
      rounds.emplace_back(commands.begin(), commands.end());
    }
    for (const auto& round : rounds) {
      for (const Command& command : round) table_.RunPiece(command, 0, command.bytes);
    }
    for (size_t each = running.size(); each-- > 0;) {
      if (rounds[each].empty()) running.erase(running.begin() + static_cast<ptrdiff_t>(each));
    }
  }
  EXPECT_EQ(one.result(), 5);
  EXPECT_EQ(other.result(), 6);
  uint32_t values = 0;
  for (uint32_t way = 0; way < kWays; way++) {
    values += Holds(table_.EntryAt(0, way), HashOf(secret_, "a")) ? 1 : 0;
  }
  EXPECT_EQ(values, 1u);
  const std::string stays = Get("a");
  EXPECT_TRUE(stays == first || stays == second) << stays;
}

TEST_F(StepsTest, StampsWrapAround) {
  for (uint32_t key = 0; key < kWays; key++) Put(std::to_string(key), "value");
  for (uint32_t way = 0; way < kWays; way++) {
    Control control = Control::Decode(table_.EntryAt(0, way).control);
    control.stamp += UINT32_MAX - 8;
    table_.EntryAt(0, way).control = control.word();
  }
  Put("new", "value");
  EXPECT_FALSE(Has("0"));
  EXPECT_TRUE(Has("15"));
}

}  // namespace
}  // namespace rocegw::far
