// SPDX-License-Identifier: Apache-2.0
// Tests of the log queue. Runs under ThreadSanitizer too.
#include "gateway/process/log/log_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "gateway/base/unique_fd.h"

namespace rocegw::process {
namespace {

class LogQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as in a daemon
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_.Reset(ends[0]);
    writer_ = ends[1];  // stays open for the queue
  }
  std::string ReadSome() const {
    std::string text(65536, '\0');
    const ssize_t length = ::read(reader_.get(), text.data(), text.size());
    text.resize(length < 0 ? 0 : static_cast<size_t>(length));
    return text;
  }

  UniqueFd reader_;
  int writer_ = -1;
};

TEST_F(LogQueueTest, Lines_ArriveInOrder) {
  LogQueue queue(writer_);
  queue.Append("one\n");
  queue.Append("two\n");
  EXPECT_TRUE(queue.Flush(Seconds(60)));
  EXPECT_EQ(ReadSome(), "one\ntwo\n");
  EXPECT_EQ(queue.dropped(), 0u);
}

TEST_F(LogQueueTest, PipeThatNothingReads_BlocksNoCaller_AndDropsAreReported) {
  LogQueue queue(writer_);
  const std::string line(1023, 'x');
  // The pipe takes 64 KiB and the queue 4 MiB.
  constexpr int kLines = 8000;
  for (int i = 0; i < kLines; ++i) queue.Append(line + "\n");
  EXPECT_FALSE(queue.Flush(Milliseconds(10)));
  const uint64_t dropped = queue.dropped();
  EXPECT_GT(dropped, 0u);
  EXPECT_LT(dropped, uint64_t{kLines});
  std::string text;
  const std::string note = std::to_string(dropped) + " lines of the log were dropped";
  while (text.find(note) == std::string::npos) text += ReadSome();
  EXPECT_EQ(text.find(note), 1024 * (kLines - dropped)) << "behind all that was kept";
}

TEST_F(LogQueueTest, End_DoesNotWaitForTheReader) {
  {
    LogQueue queue(writer_);
    for (int i = 0; i < 1000; ++i) queue.Append(std::string(1023, 'x') + "\n");
  }
  EXPECT_FALSE(ReadSome().empty());
}

TEST_F(LogQueueTest, SignalsOfTheProcess_AreLeftToItsOtherThreads) {
  LogQueue queue(writer_);
  queue.Append("one\n");
  ASSERT_TRUE(queue.Flush(Seconds(60)));
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigset_t before;
  // From now on only the queue's thread could take the signal, which would end the process.
  ::pthread_sigmask(SIG_BLOCK, &term, &before);
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  int taken = 0;
  EXPECT_EQ(::sigwait(&term, &taken), 0);
  EXPECT_EQ(taken, SIGTERM);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(LogQueueTest, DescriptorThatFails_CountsItsLines) {
  LogQueue queue(-1);
  queue.Append("one\n");
  EXPECT_TRUE(queue.Flush(Seconds(60)));
  EXPECT_EQ(queue.dropped(), 1u);
  ::close(writer_);
}

}  // namespace
}  // namespace rocegw::process
