// SPDX-License-Identifier: Apache-2.0
// Descriptors that a successor has already are not sent again; those that came or changed are.
#include "gateway/take_over/sent_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gateway/base/unique_fd.h"

namespace rocegw::take_over {
namespace {

UniqueFd Memory() { return UniqueFd(::memfd_create("test", MFD_CLOEXEC)); }

TEST(SentDescriptors, SameFile_IsSentOnce) {
  const UniqueFd first = Memory();
  const UniqueFd copy(::dup(first.get()));
  SentDescriptors sent;
  EXPECT_EQ(sent.Missing({{FdKind::kChunk, "1/0", first.get()}}).size(), 1u);
  EXPECT_TRUE(sent.Missing({{FdKind::kChunk, "1/0", copy.get()}}).empty());
}

TEST(SentDescriptors, AnotherFileOfThatName_IsSent) {
  const UniqueFd first = Memory();
  const UniqueFd second = Memory();
  SentDescriptors sent;
  (void)sent.Missing({{FdKind::kRegion, "1/1", first.get()}});
  const OfferedFds missing = sent.Missing({{FdKind::kRegion, "1/1", second.get()}});
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].fd, second.get());
  EXPECT_TRUE(sent.Missing({{FdKind::kRegion, "1/1", second.get()}}).empty());
}

TEST(SentDescriptors, FileOpenedAsAPath_IsSentOnce) {
  const UniqueFd first(::open("/dev/null", O_PATH | O_CLOEXEC));
  const UniqueFd second(::open("/dev/zero", O_PATH | O_CLOEXEC));
  SentDescriptors sent;
  EXPECT_EQ(sent.Missing({{FdKind::kXrcFile, "1", first.get()}}).size(), 1u);
  EXPECT_TRUE(sent.Missing({{FdKind::kXrcFile, "1", first.get()}}).empty());
  EXPECT_EQ(sent.Missing({{FdKind::kXrcFile, "1", second.get()}}).size(), 1u);
}

// A connection that is being closed has none, and one that cannot be sent would stop all others.
TEST(SentDescriptors, ClosedDescriptor_IsLeftOut) {
  const UniqueFd first = Memory();
  SentDescriptors sent;
  const OfferedFds missing =
      sent.Missing({{FdKind::kClientSocket, "1", -1}, {FdKind::kClientSocket, "2", first.get()}});
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].name, "2");
  EXPECT_EQ(sent.Missing({{FdKind::kClientSocket, "1", first.get()}}).size(), 1u);
}

TEST(SentDescriptors, AnotherNameOrKind_IsSent) {
  const UniqueFd fd(::eventfd(0, EFD_CLOEXEC));
  SentDescriptors sent;
  (void)sent.Missing({{FdKind::kWake, "1/0", fd.get()}});
  EXPECT_EQ(sent.Missing({{FdKind::kWake, "2/0", fd.get()}}).size(), 1u);
  EXPECT_EQ(sent.Missing({{FdKind::kEvents, "1/0", fd.get()}}).size(), 1u);
  sent.clear();
  EXPECT_EQ(sent.Missing({{FdKind::kWake, "1/0", fd.get()}}).size(), 1u);
}

}  // namespace
}  // namespace rocegw::take_over
