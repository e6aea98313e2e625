// SPDX-License-Identifier: Apache-2.0
// Packets that wait for their neighbour in a port that writes Ethernet frames.
#include "gateway/port/frame_endpoint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "tests/support/network/port_fixture.h"

namespace rocegw::port::frame_endpoint {
namespace {

using rocegw::testing::WriteTestPacket;

constexpr PoolTag kPool{1};
constexpr PoolTag kScanner{2};
constexpr size_t kParked = 256;
// As long as the endpoint leaves that many waiting packets alone after a look.
constexpr std::chrono::microseconds kPauseBetweenLooks{4 * kParked};

wire::Gid Host(uint32_t number) { return wire::Gid::FromV4(0x0A000000U + number); }

// Knows the neighbours that the test names.
class NamedNeighbours final : public LinkLayer {
 public:
  void Name(const wire::Gid& address) {
    known_[address] = {0x02, 0, 0, 0, 0, 9};
    Learned();
  }
  size_t asked() const { return asked_; }

  MacAddress mac() const override { return {0x02, 0, 0, 0, 0, 1}; }
  std::vector<wire::Gid> OwnAddresses() override { return {}; }
  Reach Resolve(const wire::Gid& destination, PoolTag /*pool*/, MacAddress& mac) override {
    ++asked_;
    const auto found = known_.find(destination);
    if (found == known_.end()) return Reach::kUnknown;
    mac = found->second;
    return Reach::kNeighbour;
  }
  void HandleFrame(std::span<const uint8_t> /*frame*/) override {}
  size_t TakeFrame(std::span<uint8_t, kMaxFrame> /*out*/) override { return 0; }
  void Tick() override {}

 private:
  std::map<wire::Gid, MacAddress> known_;
  size_t asked_ = 0;
};

class FrameEndpointTest : public ::testing::Test, private FrameSink {
 protected:
  ~FrameEndpointTest() override { endpoint_.Clear(); }

  void Send(const wire::Gid& destination, PoolTag pool) {
    slots_.push_back(std::make_unique<Slot>());
    Slot& slot = *slots_.back();
    slot.data = slot.bytes + kFrameHeaderRoom;
    slot.length = static_cast<uint32_t>(WriteTestPacket(Qpn{0x12}, 0, 8, slot.data));
    slot.path = {.source = Host(0), .destination = destination, .source_port = 0xC000};
    slot.pool = pool;
    TxPacket* packet = &slot;
    EXPECT_EQ(endpoint_.Transmit({&packet, 1}), 1U);
  }
  uint64_t lost() { return counters_.tx_lost.Read(); }

  NamedNeighbours link_;
  PortCounters counters_;
  FrameEndpoint endpoint_{{.max_datagram = 1024, .link = &link_}, *this, counters_};
  std::vector<wire::Gid> sent_;

 private:
  struct Slot : FrameSlot {
    uint8_t bytes[256] = {};
  };
  bool HasRoom() override { return true; }
  void TakeFrame(FrameSlot& slot, size_t /*headers*/, size_t /*payload*/) override {
    sent_.push_back(slot.path.destination);
  }
  void FreeSlot(FrameSlot& /*slot*/) override {}

  std::vector<std::unique_ptr<Slot>> slots_;
};

TEST_F(FrameEndpointTest, UnknownNeighbour_ThePacketWaitsAndLeavesFirst) {
  Send(Host(1), kPool);
  EXPECT_TRUE(endpoint_.waits());
  link_.Name(Host(1));
  Send(Host(1), kPool);
  EXPECT_EQ(sent_, (std::vector<wire::Gid>{Host(1), Host(1)}));
  EXPECT_FALSE(endpoint_.waits());
}

TEST_F(FrameEndpointTest, ScanOfAPool_LosesItsOwnPacketsAndAnotherPoolsStillWaits) {
  for (uint32_t i = 0; i < 1000; ++i) Send(Host(1000 + i), kScanner);
  EXPECT_EQ(lost(), 1000 - kParked);
  for (uint32_t i = 0; i < 10; ++i) Send(Host(i), kPool);
  EXPECT_EQ(lost(), 1000 - kParked + 10) << "ten of the scanner";
  for (uint32_t i = 0; i < 10; ++i) link_.Name(Host(i));
  // After a look, the waiting packets are left alone for a while.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (sent_.size() < 10 && std::chrono::steady_clock::now() < deadline) endpoint_.Unpark();
  EXPECT_EQ(sent_.size(), 10U);
}

TEST_F(FrameEndpointTest, ManyWait_APacketToAKnownNeighbourCostsNoLookAtThem) {
  link_.Name(Host(1));
  Send(Host(1), kPool);
  for (uint32_t i = 0; i < kParked; ++i) Send(Host(1000 + i), kScanner);
  endpoint_.Unpark();
  const size_t asked = link_.asked();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    link_.Name(Host(static_cast<uint32_t>(100 + i)));
    Send(Host(1), kPool);
  }
  const auto pauses =
      static_cast<size_t>((std::chrono::steady_clock::now() - begin) / kPauseBetweenLooks);
  EXPECT_LE(link_.asked(), asked + (2 + pauses) * kParked) << "news are looked at at intervals";
  EXPECT_EQ(sent_.size(), 101U);
}

}  // namespace
}  // namespace rocegw::port::frame_endpoint
