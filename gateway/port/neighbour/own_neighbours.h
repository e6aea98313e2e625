// SPDX-License-Identifier: Apache-2.0
// Link layer of a device without a kernel interface: addresses and routes come from the
// configuration, MAC addresses from ARP and neighbour discovery, and requests for own addresses are
// answered. Any worker of the port may call; every call locks. Entries are refreshed before they
// expire. Strangers can make any number of requests for any address in any name: what they say
// about addresses that no queue asked for is kept apart, and their answers leave half of the frames
// to the port's own requests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "gateway/base/time.h"
#include "gateway/port/link_layer.h"
#include "gateway/port/neighbour/fair_table.h"
#include "gateway/port/neighbour/neighbour_protocol.h"
#include "gateway/port/neighbour/open_questions.h"
#include "gateway/port/port_config.h"

namespace rocegw::port {

class OwnNeighbours final : public LinkLayer {
 public:
  // Announces the addresses at once.
  OwnNeighbours(const MacAddress& mac, const StaticNetwork& network);

  MacAddress mac() const override { return mac_; }
  std::vector<wire::Gid> OwnAddresses() override;
  Reach Resolve(const wire::Gid& destination, PoolTag pool, MacAddress& mac) override;
  void HandleFrame(std::span<const uint8_t> frame) override;
  size_t TakeFrame(std::span<uint8_t, kMaxFrame> out) override;
  void Tick() override;

  // Resolves at a given time.
  Reach ResolveAt(TimePoint now, const wire::Gid& destination, PoolTag pool, MacAddress& mac);
  void HandleFrameAt(TimePoint now, std::span<const uint8_t> frame);

 private:
  static constexpr size_t kMostNeighbours = 4096;
  static constexpr size_t kMostHeard = 1024;
  static constexpr size_t kMostFrames = 64;
  static constexpr size_t kMostAnswers = kMostFrames / 2;
  struct Neighbour {
    MacAddress mac{};
    TimePoint heard{};
    TimePoint asked{};
  };
  struct Frame {
    bool is_answer = false;
    size_t length = 0;
    std::array<uint8_t, kMaxFrame> bytes;
  };

  bool OwnLocked(const wire::Gid& address) const;
  bool NextHop(const wire::Gid& destination, wire::Gid& next) const;
  const wire::Gid* SourceTowards(const wire::Gid& next) const;
  bool OnLink(const wire::Gid& address) const;
  // Returns the neighbour if its address is known; nullptr: it must be asked for.
  Neighbour* Known(TimePoint now, const wire::Gid& address, PoolTag pool);
  void Learn(TimePoint now, const NeighbourMessage& message, bool for_us);
  void Ask(TimePoint now, const wire::Gid& target, TimePoint& asked);
  template <typename Write>
  bool Send(bool is_answer, Write write);

  const MacAddress mac_;
  const StaticNetwork network_;
  std::mutex mutex_;
  std::map<wire::Gid, MacAddress> configured_;
  FairTable<Neighbour> neighbours_{kMostNeighbours};  // that queues have asked for
  FairTable<Neighbour> heard_{kMostHeard};            // that no queue has asked for yet
  OpenQuestions questions_;
  std::vector<Frame> frames_;
  size_t answers_ = 0;  // number of answers in frames_
  unsigned ticks_ = 0;
};

}  // namespace rocegw::port
