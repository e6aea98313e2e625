// SPDX-License-Identifier: Apache-2.0
// Link layer of a device without a kernel interface: addresses and routes come from the
// configuration, MAC addresses from ARP and neighbour discovery, and requests for own addresses are
// answered. Any worker of the port may call; every call locks. Entries are refreshed before they
// expire.
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
#include "gateway/port/port_config.h"

namespace rocegw::port {

class OwnNeighbours final : public LinkLayer {
 public:
  // Announces the addresses at once.
  OwnNeighbours(const MacAddress& mac, const StaticNetwork& network);

  MacAddress mac() const override { return mac_; }
  std::vector<wire::Gid> OwnAddresses() override;
  Reach Resolve(const wire::Gid& destination, MacAddress& mac) override;
  void HandleFrame(std::span<const uint8_t> frame) override;
  size_t TakeFrame(std::span<uint8_t, kMaxFrame> out) override;
  void Tick() override;

  // Resolves at a given time.
  Reach ResolveAt(TimePoint now, const wire::Gid& destination, MacAddress& mac);
  void HandleFrameAt(TimePoint now, std::span<const uint8_t> frame);

 private:
  static constexpr size_t kMaxNeighbours = 4096;
  static constexpr size_t kMaxWaitingFrames = 64;
  struct Neighbour {
    bool known = false;
    bool fixed = false;  // configured
    MacAddress mac{};
    TimePoint heard{};
    TimePoint asked{};
  };
  struct Frame {
    size_t length = 0;
    std::array<uint8_t, kMaxFrame> bytes;
  };

  bool OwnLocked(const wire::Gid& address) const;
  bool NextHop(const wire::Gid& destination, wire::Gid& next) const;
  const wire::Gid* SourceTowards(const wire::Gid& next) const;
  Neighbour* Entry(const wire::Gid& address);
  void Ask(const wire::Gid& target);
  template <typename Write>
  void Send(Write write);

  const MacAddress mac_;
  const StaticNetwork network_;
  std::mutex mutex_;
  std::map<wire::Gid, Neighbour> neighbours_;
  std::vector<Frame> frames_;
  unsigned ticks_ = 0;
};

}  // namespace rocegw::port
