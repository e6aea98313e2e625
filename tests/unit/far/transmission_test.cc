// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/nbd/transmission.h"

#include <arpa/inet.h>
#include <endian.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/far/memory_space.h"

namespace rocegw::far {
namespace {

constexpr uint64_t kSize = 64 << 10;
enum : uint16_t { kRead = 0, kWrite = 1, kDisconnect = 2, kFlush = 3, kTrim = 4 };

class TransmissionTest : public testing::Test {
 protected:
  TransmissionTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0);
    server_ = std::make_unique<Transmission>(space_, kSize, ends_[0]);
    thread_ = std::thread([this] { status_ = server_->Run(); });
  }
  ~TransmissionTest() override {
    shutdown(ends_[1], SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(ends_[0]);
    close(ends_[1]);
  }
  void Send(uint16_t kind, uint64_t cookie, uint64_t offset, uint32_t length,
            const std::string& data = "", uint16_t flags = 0, uint32_t magic = 0x25609513) {
    char header[28];
    const auto put = [&](size_t at, auto value) { std::memcpy(header + at, &value, sizeof value); };
    put(0, htonl(magic));
    put(4, htons(flags));
    put(6, htons(kind));
    put(8, cookie);
    put(16, htobe64(offset));
    put(24, htonl(length));
    EXPECT_EQ(send(ends_[1], header, sizeof header, 0), 28);
    EXPECT_EQ(send(ends_[1], data.data(), data.size(), 0), static_cast<ssize_t>(data.size()));
  }
  std::string Receive(size_t bytes) {
    std::string text(bytes, 0);
    EXPECT_EQ(recv(ends_[1], text.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
    return text;
  }
  // Error of the next reply; its cookie goes to *cookie.
  uint32_t Reply(uint64_t* cookie) {
    const std::string header = Receive(16);
    uint32_t magic = 0;
    uint32_t error = 0;
    std::memcpy(&magic, header.data(), 4);
    std::memcpy(&error, header.data() + 4, 4);
    std::memcpy(cookie, header.data() + 8, 8);
    EXPECT_EQ(ntohl(magic), 0x67446698u);
    return ntohl(error);
  }

  int ends_[2] = {-1, -1};
  MemorySpace space_{kSize};
  std::unique_ptr<Transmission> server_;
  std::thread thread_;
  Status status_;
};

TEST_F(TransmissionTest, ReadReturnsWhatWasWritten) {
  uint64_t cookie = 0;
  Send(kWrite, 7, 1000, 5, "words");
  EXPECT_EQ(Reply(&cookie), 0u);
  EXPECT_EQ(cookie, 7u);
  Send(kRead, 8, 998, 9);
  EXPECT_EQ(Reply(&cookie), 0u);
  EXPECT_EQ(cookie, 8u);
  EXPECT_EQ(Receive(9), "\xa5\xa5words\xa5\xa5");
}

TEST_F(TransmissionTest, RequestsEndInAnyOrder) {
  space_.Hold();
  Send(kWrite, 1, 0, 3, "one");
  Send(kWrite, 2, 4096, 3, "two");
  while (space_.held() != 2) std::this_thread::yield();
  space_.CompleteHeld();
  uint64_t first = 0;
  uint64_t second = 0;
  EXPECT_EQ(Reply(&first), 0u);
  EXPECT_EQ(Reply(&second), 0u);
  EXPECT_EQ(first, 2u);
  EXPECT_EQ(second, 1u);
}

TEST_F(TransmissionTest, RequestsBeyondTheEndAndUnknownOnesAreRefused) {
  uint64_t cookie = 0;
  Send(kRead, 1, kSize - 4, 5);
  EXPECT_EQ(Reply(&cookie), static_cast<uint32_t>(EINVAL));
  Send(kRead, 2, UINT64_MAX, 1);
  EXPECT_EQ(Reply(&cookie), static_cast<uint32_t>(EINVAL));
  Send(kTrim, 3, 0, 4096);
  EXPECT_EQ(Reply(&cookie), static_cast<uint32_t>(EINVAL));
  Send(kWrite, 4, kSize, 4, "more");
  EXPECT_EQ(Reply(&cookie), static_cast<uint32_t>(EINVAL));
  // A request is counted behind its reply.
  while (server_->GetCounts().failed < 4) std::this_thread::yield();
  EXPECT_EQ(server_->GetCounts().failed, 4u);
}

TEST_F(TransmissionTest, LostPageIsAnErrorWithoutData) {
  uint64_t cookie = 0;
  space_.LosePage(0);
  Send(kRead, 1, 0, 4096);
  EXPECT_EQ(Reply(&cookie), static_cast<uint32_t>(EIO));
  Send(kFlush, 2, 0, 0);
  EXPECT_EQ(Reply(&cookie), 0u);
  EXPECT_EQ(cookie, 2u);
}

TEST_F(TransmissionTest, FlushFailsAWriteThatAsksForIt) {
  uint64_t cookie = 0;
  space_.FailFlushes();
  Send(kWrite, 1, 0, 3, "one", 1);
  EXPECT_EQ(Reply(&cookie), static_cast<uint32_t>(EIO));
  Send(kWrite, 2, 0, 3, "one");
  EXPECT_EQ(Reply(&cookie), 0u);
}

TEST_F(TransmissionTest, DisconnectWaitsForTransfers) {
  space_.Hold();
  Send(kWrite, 1, 0, 3, "one");
  Send(kDisconnect, 2, 0, 0);
  while (space_.held() != 1) std::this_thread::yield();
  space_.CompleteHeld();
  uint64_t cookie = 0;
  EXPECT_EQ(Reply(&cookie), 0u);
  thread_.join();
  EXPECT_TRUE(status_.ok());
}

TEST_F(TransmissionTest, WhatIsNoRequestEndsTheConnection) {
  Send(kRead, 1, 0, 1, "", 0, 0x12345678);
  thread_.join();
  EXPECT_EQ(status_.error(), EPROTO);
}

TEST_F(TransmissionTest, TooLargeRequestsEndTheConnection) {
  Send(kRead, 1, 0, 64 << 20);
  thread_.join();
  EXPECT_EQ(status_.error(), EPROTO);
}

}  // namespace
}  // namespace rocegw::far
