// SPDX-License-Identifier: Apache-2.0
// Messages of the example kv_store.
#include "examples/kv_store/message.h"

#include <gtest/gtest.h>

namespace kv {
namespace {

const Message kMessage = {.op = Op::kWrite,
                          .outcome = Outcome::kRefused,
                          .moved = true,
                          .version = MakeVersion(7, 3),
                          .key = "k",
                          .value = "text"};

TEST(KvMessage, IsReadAsItWasWritten) {
  EXPECT_EQ(Decode(Encode(kMessage)), kMessage);
  EXPECT_EQ(CountOf(kMessage.version), 7U);
  const Message longest = {.op = Op::kPut,
                           .key = std::string(kLongestKey, 'k'),
                           .value = std::string(kLongestValue, 'v')};
  EXPECT_EQ(Encode(longest).size(), kLongestMessage);
  EXPECT_EQ(Decode(Encode(longest)), longest);
}

TEST(KvMessage, ChecksumIsCrc32c) { EXPECT_EQ(Checksum("123456789"), 0xe3069283U); }

TEST(KvMessage, NoBitMayDiffer) {
  const std::string bytes = Encode(kMessage);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string spoiled = bytes;
    spoiled[bit / 8] = static_cast<char>(spoiled[bit / 8] ^ 1 << bit % 8);
    EXPECT_EQ(Decode(spoiled), std::nullopt) << bit;
  }
}

TEST(KvMessage, AnotherLengthIsRefused) {
  const std::string bytes = Encode(kMessage);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(Decode(bytes.substr(0, size)), std::nullopt) << size;
  EXPECT_EQ(Decode(bytes + '\0'), std::nullopt);
}

}  // namespace
}  // namespace kv
