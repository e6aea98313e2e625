// SPDX-License-Identifier: Apache-2.0
// Multipath for a connected queue pair: its own channel and further channels to the same worker of
// the peer, each by another network path. Only requests that ask for no order, and their answers,
// use it; the receiver reassembles messages from all paths. Frames stay on one path for a quantum,
// so that they leave in bursts, and move on when that path has no window: faster paths therefore
// carry more. Belongs to one worker.
#pragma once

#include <vector>

#include "gateway/transport/message/peer_channels.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::transport {

class Multipath {
 public:
  bool Has(const flow::Carrier& carrier) const { return channels_.Has(carrier); }
  // Add a path, until it is dropped. Requests have as many as a gateway has paths. Answers take
  // those that the peer has chosen, up to the same number: false if they have no place left.
  void AddForRequests(flow::Carrier& carrier);
  bool AddForAnswers(flow::Carrier& carrier);
  // Returns true if requests use the path, so that the pool has a reference to its channel.
  bool ForRequests(const flow::Carrier& carrier) const {
    return (channels_.UsesOf(carrier) & kRequests) != 0;
  }
  void Drop(const flow::Carrier& carrier) { channels_.Drop(carrier); }
  size_t size() const { return channels_.size(); }
  const flow::Carrier& At(size_t index) const { return channels_.At(index); }
  std::vector<Qpn> Numbers() const;

  // Returns the path of a frame that leaves now. nullptr: no path has window, and the queue pair is
  // in every path's wait queue. `asked`: bytes that the frame requests, which come back by the same
  // path.
  flow::Carrier* Choose(const flow::WindowWaiter& waiter, flow::Carrier& own,
                        flow::WaitEntry& own_entry, uint32_t bytes, uint32_t asked, TimePoint now);
  // Returns nullptr if the channel is none of the paths.
  flow::WaitEntry* WaitEntryOf(const flow::Carrier& carrier) {
    return channels_.WaitEntryOf(carrier);
  }
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  // Bytes that leave by one path before the next is tried; equal to the quantum of a channel's wait
  // queue.
  static constexpr int32_t kQuantum = 16 * 1024;
  // Numbers of uses of an entry, which is handed over with them: one for requests, two for answers.
  // Earlier gateways knew one use only, and counted all paths for the pool.
  static constexpr uint32_t kRequests = 1;
  static constexpr uint32_t kAnswers = 2;

  PeerChannels channels_;
  size_t path_ = 0;  // 0 is the queue pair's own
  int64_t left_ = kQuantum;
};

}  // namespace rocegw::transport
