// SPDX-License-Identifier: Apache-2.0
// Link layer of a device without a kernel interface: addresses and routes come from the
// configuration, MAC addresses from ARP and neighbour discovery, and requests for own addresses are
// answered. Any worker of the port may call; every call locks. Entries are refreshed before they
// expire. Frames are not authenticated: hosts that ask for us have a small part of the table, and
// never take the place of a neighbour in use.
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
  // Limit of hosts that have asked for us and to which no packet was sent.
  static constexpr size_t kMaxAskers = kMaxNeighbours / 8;
  static constexpr size_t kMaxWaitingFrames = 64;
  static constexpr size_t kMaxWaitingAnswers = kMaxWaitingFrames / 2;
  struct Neighbour {
    bool known = false;
    bool fixed = false;  // configured
    bool asker = false;  // no packet was sent to it
    MacAddress mac{};
    TimePoint heard{};
    TimePoint asked{};
    TimePoint used{};
  };
  struct Frame {
    size_t length = 0;
    std::array<uint8_t, kMaxFrame> bytes;
  };

  bool OwnLocked(const wire::Gid& address) const;
  bool NextHop(const wire::Gid& destination, wire::Gid& next) const;
  const wire::Gid* SourceTowards(const wire::Gid& next) const;
  bool OnLink(const wire::Gid& address) const;
  // Returns the entry of a next hop to which a packet is sent.
  Neighbour& Used(TimePoint now, const wire::Gid& address);
  // Returns the entry of a host that asks for us; nullptr: it has none.
  Neighbour* Asker(TimePoint now, const wire::Gid& address);
  void MakeRoom(TimePoint now);
  // Returns false if too many frames wait, `most` at most.
  bool Ask(const wire::Gid& target);
  template <typename Write>
  bool Send(size_t most, Write write);

  const MacAddress mac_;
  const StaticNetwork network_;
  std::mutex mutex_;
  std::map<wire::Gid, Neighbour> neighbours_;
  size_t askers_ = 0;  // entries of hosts that asked
  TimePoint swept_{};  // last removal of old askers
  std::vector<Frame> frames_;
  unsigned ticks_ = 0;
};

}  // namespace rocegw::port
