// SPDX-License-Identifier: Apache-2.0
#include "gateway/base/status.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

#include "gateway/base/invariant.h"

namespace rocegw {
namespace {

TEST(Status, Default_IsOk) {
  EXPECT_TRUE(OkStatus().ok());
  EXPECT_EQ(OkStatus().error(), 0);
}

TEST(Status, Error_KeepsNumberAndText) {
  const Status status(EADDRINUSE, "port 4791 is taken");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.error(), EADDRINUSE);
  EXPECT_EQ(status.text(), "port 4791 is taken");
}

TEST(StatusOr, Value_CanBeMovedOut) {
  StatusOr<std::unique_ptr<int>> result(std::make_unique<int>(7));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result.status().ok());
  const std::unique_ptr<int> taken = std::move(*result);
  EXPECT_EQ(*taken, 7);
}

TEST(StatusOr, Error_IsTheStatus) {
  const StatusOr<int> result(Status(ENOENT, "no such thing"));
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.status().error(), ENOENT);
}

TEST(Invariant, Kept_IsTrueAndNotCounted) {
  const uint64_t before = InvariantBrokenCount();
  EXPECT_TRUE(ROCEGW_INVARIANT(1 + 1 == 2, "test-kept"));
  EXPECT_EQ(InvariantBrokenCount(), before);
}

TEST(Invariant, Broken_DiesInDebugAndCountsInRelease) {
#ifdef NDEBUG
  const uint64_t before = InvariantBrokenCount();
  EXPECT_FALSE(ROCEGW_INVARIANT(1 + 1 == 3, "test-broken"));
  EXPECT_EQ(InvariantBrokenCount(), before + 1);
#else
  EXPECT_DEATH((void)ROCEGW_INVARIANT(1 + 1 == 3, "test-broken"), "invariant broken: test-broken");
#endif
}

}  // namespace
}  // namespace rocegw
