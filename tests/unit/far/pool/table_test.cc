// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/pool/table.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/far/pool/fake_table.h"

namespace rocegw::far {
namespace {

TEST(TableShape, FillsTheMemoryWithBuckets) {
  const TableShape shape = TableShape::Of(64 << 20, 65536);
  EXPECT_LE(shape.bytes(), uint64_t{64} << 20);
  EXPECT_GT((TableShape{shape.buckets + 1, 65536}).bytes(), uint64_t{64} << 20);
  EXPECT_EQ(shape.BlockOffset(0, 0) % TableShape::kPage, 0u);
  EXPECT_GE(shape.BlockOffset(0, 0), shape.BucketOffset(shape.buckets));
  EXPECT_EQ(shape.BlockOffset(1, 0) - shape.BlockOffset(0, 15), 65536u);
  EXPECT_EQ(TableShape::Of(1 << 20, 65536).buckets, 0u);
}

TEST(Control, IsTheSameAfterDecoding) {
  const Control control{EntryState::kValid, Control::kVersions, UINT32_MAX};
  const Control decoded = Control::Decode(control.word());
  EXPECT_EQ(decoded.state, EntryState::kValid);
  EXPECT_EQ(decoded.version, Control::kVersions);
  EXPECT_EQ(decoded.stamp, UINT32_MAX);
}

TEST(PoolSecret, HashesDependOnEveryByte) {
  const PoolSecret secret = TestSecret();
  std::vector<uint8_t> value(200);
  const uint64_t before = secret.HashValue(value.data(), value.size());
  for (uint8_t& byte : value) {
    byte ^= 1;
    EXPECT_NE(secret.HashValue(value.data(), value.size()), before);
    byte ^= 1;
  }
  EXPECT_NE(secret.HashValue(value.data(), value.size() - 1), before);
}

TEST(PoolSecret, OtherSecretsHaveOtherHashesAndTags) {
  std::vector<uint8_t> one(17, 1), other = one;
  other.back() = 2;  // behind the first 16 bytes
  const PoolSecret first(one), second(other);
  EXPECT_FALSE(HashOf(first, "key") == HashOf(second, "key"));
  EXPECT_NE(first.Tag(1, one), second.Tag(1, one));
  EXPECT_NE(first.Tag(1, one), first.Tag(2, one));
  EXPECT_NE(first.HashValue(one.data(), one.size()), second.HashValue(one.data(), one.size()));
}

}  // namespace
}  // namespace rocegw::far
