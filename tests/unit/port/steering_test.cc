// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/steering.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "gateway/base/unique_fd.h"

namespace rocegw::port {
namespace {

TEST(Steering_BucketOf, TakesBits23To18) {
  EXPECT_EQ(BucketOf(Qpn{0}), 0);
  EXPECT_EQ(BucketOf(Qpn{0x3FFFF}), 0);
  EXPECT_EQ(BucketOf(Qpn{0x40000}), 1);
  EXPECT_EQ(BucketOf(kMulticastQpn), 63);
}

TEST(Steering_DestinationQpn, ReadsTheBthOrYieldsInvalid) {
  const std::array<uint8_t, 8> bytes{0, 0, 0, 0, 0, 0x12, 0x34, 0x56};
  EXPECT_EQ(DestinationQpn(bytes), Qpn{0x123456});
  EXPECT_EQ(DestinationQpn(std::span(bytes).first(7)), kInvalidQpn);
}

TEST(Steering_Default, SpreadsBucketsEvenlyAndBoundsTheWorkers) {
  const SteeringTable table(3);
  EXPECT_EQ(table.worker_count(), 3U);
  std::array<int, 3> load{};
  for (uint8_t b = 0; b < kBuckets; ++b) ++load[table.WorkerOf(b)];
  EXPECT_EQ(load, (std::array<int, 3>{22, 21, 21}));
  EXPECT_EQ(SteeringTable(0).worker_count(), 1U);
  EXPECT_EQ(SteeringTable(1000).worker_count(), 64U);
}

TEST(Steering_SourcePort, KeepsTheBucketAndStaysInTheDynamicRange) {
  for (unsigned hash = 0; hash < 256; ++hash) {
    for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
      const Qpn qpn{bucket << kBucketShift | 0x2A};
      const uint16_t port = SourcePort(static_cast<uint8_t>(hash), qpn);
      ASSERT_GE(port, 0xC000);
      ASSERT_EQ(port % kBuckets, bucket);
      ASSERT_EQ((port >> 6) & 0xFF, hash);
    }
  }
}

TEST(Steering_PathHash, DependsOnBothEndsAndTheSalt) {
  const wire::Gid a = wire::Gid::FromV4(0x0A000001);
  std::array<bool, 256> seen{};
  int distinct = 0;
  for (uint32_t i = 0; i < 256; ++i) {
    const uint8_t hash = PathHash(a, wire::Gid::FromV4(0x0A000100 + i), 0);
    if (!seen[hash]) ++distinct;
    seen[hash] = true;
  }
  EXPECT_GT(distinct, 120);  // a random function gives 162 on average
  EXPECT_NE(PathHash(a, a, 0), PathHash(a, a, 1));
  EXPECT_EQ(PathHash(a, a, 7), PathHash(a, a, 7));
}

// Runs the program in the kernel, on a reuseport group of loopback sockets.
class Group {
 public:
  explicit Group(const SteeringTable& table) {
    std::vector<sock_filter> code = table.ReuseportProgram();
    const sock_fprog program{static_cast<uint16_t>(code.size()), code.data()};
    for (size_t i = 0; i < table.worker_count(); ++i) {
      UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
      const int one = 1;
      EXPECT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &one, sizeof one), 0);
      if (i == 0) {
        EXPECT_EQ(
            setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program), 0)
            << "the kernel refused the program";
      }
      EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address_), sizeof address_), 0);
      socklen_t length = sizeof address_;
      EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address_), &length), 0);
      sockets_.push_back(std::move(fd));
    }
    sender_ = UniqueFd(socket(AF_INET, SOCK_DGRAM, 0));
  }

  // Returns the socket that receives these bytes; -1: none.
  int SocketFor(std::span<const uint8_t> bytes) {
    EXPECT_EQ(sendto(sender_.get(), bytes.data(), bytes.size(), 0,
                     reinterpret_cast<sockaddr*>(&address_), sizeof address_),
              static_cast<ssize_t>(bytes.size()));
    std::array<uint8_t, 64> buffer;
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (recv(sockets_[i].get(), buffer.data(), buffer.size(), 0) >= 0) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  sockaddr_in address_{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}};
  std::vector<UniqueFd> sockets_;
  UniqueFd sender_;
};

void ExpectKernelAgrees(const SteeringTable& table) {
  Group group(table);
  for (unsigned bucket = 0; bucket < kBuckets; ++bucket) {
    std::array<uint8_t, 16> packet{0x04};
    packet[5] = static_cast<uint8_t>(bucket << 2 | 3);
    packet[6] = packet[7] = 0xFF;
    EXPECT_EQ(group.SocketFor(packet), table.WorkerOf(static_cast<uint8_t>(bucket)))
        << "bucket " << bucket;
  }
}

TEST(Steering_ReuseportProgram, OneWorker) { ExpectKernelAgrees(SteeringTable(1)); }
TEST(Steering_ReuseportProgram, TwoWorkers) { ExpectKernelAgrees(SteeringTable(2)); }
TEST(Steering_ReuseportProgram, FiveWorkers) { ExpectKernelAgrees(SteeringTable(5)); }
TEST(Steering_ReuseportProgram, SixtyFourWorkers) { ExpectKernelAgrees(SteeringTable(64)); }
TEST(Steering_ReuseportProgram, UnevenTable) {
  SteeringTable table(1);
  for (uint8_t b = 40; b < 50; ++b) table.Assign(b, 2);
  table.Assign(7, 1);
  table.Assign(63, 2);
  ExpectKernelAgrees(table);
}

TEST(Steering_ReuseportProgram, TooShortForABthGoesToTheFirstSocket) {
  Group group(SteeringTable(2));
  const std::array<uint8_t, 3> packet{0xFF, 0xFF, 0xFF};
  EXPECT_EQ(group.SocketFor(packet), 0);
}

}  // namespace
}  // namespace rocegw::port
