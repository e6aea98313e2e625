// SPDX-License-Identifier: Apache-2.0
// Decides which share of strangers' datagrams a worker looks at while they come faster than it can
// answer them. A flood then costs the worker a bounded part of its time, and those who send little
// are not hurt by it: the rate that is left is shared max-min fairly among buckets of addresses,
// apart for each kind. Peers are not strangers: addresses to which queue pairs are connected, whose
// packets queue pairs take, or that the control thread names. Of them only MADs are limited, which
// anybody can send in their name.
//
// Nothing is counted per datagram as long as no flood is seen, except those that nobody takes.
// Belongs to one worker.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gateway/base/secret_sequence.h"
#include "gateway/base/time.h"
#include "gateway/port/flood_filter.h"

namespace rocegw::worker {

class FloodGuard {
 public:
  // Datagrams per second of strangers that a worker looks at, and MADs of all known sources, by
  // kind. A program's connection takes four MADs, and a host that connects is known from the first
  // connection on.
  static constexpr std::array<uint32_t, port::kFloodKinds> kMostOfStrangers = {6'000, 8'000, 8'000};
  static constexpr std::array<uint32_t, 2> kMostOfKnown = {32'000, 8'000};
  static constexpr Duration kWindow = Milliseconds(20);
  // Time for which a peer stays one after it was noted.
  static constexpr Duration kPeerFor = Seconds(10);
  // Time after which peers are wanted again. A peer keeps its place against others twice as long.
  static constexpr Duration kListEach = Seconds(1);

  // secret: key of the buckets.
  explicit FloodGuard(const SecretKey& secret);

  // Notes a MAD, or a datagram that no queue pair and no channel took.
  void OnStray(const wire::Gid& source, port::FloodKind kind);
  // Notes a peer: a datagram of it was taken, or it is named by PeersWanted. Needed only while
  // watching().
  void OnPeer(const wire::Gid& peer, TimePoint now);
  bool watching() const { return watching_; }
  // Returns true if Look may have something to judge.
  bool active() const { return strays_ != 0 || watching_; }

  // Judges the last window if it is over. Returns true if the ports need filter() now.
  bool Look(TimePoint now) { return now >= next_look_ && active() && Judge(now); }
  // Returns true if the caller is to name all peers that it knows now (OnPeer).
  bool PeersWanted(TimePoint now);
  // Returns when Look has something to do although no datagram comes; kNever: not.
  TimePoint NextDeadline() const { return watching_ ? next_look_ : kNever; }
  const port::FloodFilter& filter() const { return filter_; }

  // For datagrams of ports that cannot filter: returns whether the worker looks at this one.
  bool Passes(const wire::Gid& source, std::span<const uint8_t> datagram);

 private:
  static constexpr size_t kPlaces = size_t{2} * port::FloodFilter::kMostKnown;
  static constexpr size_t kProbes = 8;

  // Strays of the window, and the estimate of all that were sent, per second.
  struct Rate {
    uint32_t counted = 0;
    double per_second = 0;
    void Judge(port::PassShare share, double seconds);
  };
  struct Peer {
    wire::Gid address;
    TimePoint last;
  };

  bool Judge(TimePoint now);
  port::FloodFilter MakeFilter(TimePoint now) const;
  bool Differs(const port::FloodFilter& wanted) const;
  // Returns true if sources of that kind send more than the worker looks at.
  bool Flooded(size_t kind) const;

  std::array<std::array<Rate, port::FloodFilter::kBuckets>, port::kFloodKinds> of_strangers_{};
  std::array<Rate, port::kFloodKinds> of_known_{};
  // Peers, at one of the places behind the hash of their address.
  std::array<Peer, kPlaces> peers_{};
  TimePoint next_list_{};
  uint32_t strays_ = 0;  // number in the window
  bool watching_ = false;
  TimePoint begun_{};  // begin of the window
  TimePoint next_look_{};
  TimePoint applied_{};  // last time that the ports got the filter
  uint64_t random_;
  port::FloodFilter filter_;
};

}  // namespace rocegw::worker
