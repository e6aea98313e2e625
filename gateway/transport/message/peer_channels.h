// SPDX-License-Identifier: Apache-2.0
// Channels that a queue pair uses beside the one that it may be bound to. For each channel it keeps
// the queue pair's entry in the channel's wait queue and the number of messages and answers that
// need the channel. An endpoint keeps a channel only while something is in flight there, so that
// its state does not grow with the number of gateways it ever talked to.
//
// A pool may set a window. Then each endpoint has at most a window of payload in flight per peer
// gateway, over all channels to it, as separate connections would have. A slow peer gateway
// therefore does not delay traffic to the others. Belongs to one worker.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gateway/flow/carrier.h"

namespace rocegw::flow {
class CarrierNames;
}
namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::transport {

struct QpContext;

class PeerChannels {
 public:
  PeerChannels() = default;
  ~PeerChannels() { Clear(); }
  PeerChannels(const PeerChannels&) = delete;
  PeerChannels& operator=(const PeerChannels&) = delete;

  // Counts one more message or answer that needs the channel. The first one holds the carrier.
  void Use(flow::Carrier& carrier);
  // Counts one less. The entry goes when nothing needs it any more (Sweep).
  void Leave(const flow::Carrier& carrier);
  // Returns the number of uses; 0 also for an entry that only waits to leave the channel's wait
  // queue or for frames to arrive.
  uint32_t UsesOf(const flow::Carrier& carrier) const;
  bool Has(const flow::Carrier& carrier) const { return Find(carrier) != nullptr; }
  bool MaySend(const flow::WindowWaiter& waiter, flow::Carrier& carrier, uint32_t bytes,
               TimePoint now);
  // Endpoints: as above, but within the window of the pool.
  bool MaySend(QpContext& qp, flow::Carrier& carrier, uint32_t bytes, TimePoint now);
  Psn OnSent(QpContext& qp, flow::Carrier& carrier, const flow::FrameRef& frame, uint32_t bytes,
             TimePoint now);
  // Takes `bytes` of payload off the window, since they are acknowledged or never left. Returns
  // true if a frame to the same peer gateway had been refused for lack of window.
  bool OnArrived(const flow::Carrier& carrier, uint32_t bytes);
  void OnTurn(const flow::Carrier& carrier);
  // Forgets the channel, which is destroyed.
  void Drop(const flow::Carrier& carrier);
  void Clear();

  size_t size() const { return channels_.size(); }
  flow::Carrier& At(size_t index) const { return *channels_[index].carrier; }
  // Returns nullptr if the queue pair has no entry for the channel.
  flow::WaitEntry* WaitEntryOf(const flow::Carrier& carrier);
  // Writes or reads the state; the reader holds the carriers.
  void HandOver(hand_over::StateStream& state, flow::CarrierNames& names);

 private:
  struct PeerChannel {
    flow::Carrier* carrier = nullptr;
    flow::WaitEntry wait_entry;
    uint32_t uses = 0;
    // Used only if the pool has a window:
    uint32_t in_flight = 0;  // payload bytes that have not arrived
    // Part of in_flight behind the last frame that asked for an acknowledgement.
    uint32_t unasked = 0;
    bool wants_room = false;  // a frame for this channel did not fit into the window
  };
  struct InFlight {
    uint32_t bytes = 0;
    uint32_t unasked = 0;
  };
  // Entries move, so a channel's wait queue refers to the queue pair, not to an entry.
  const PeerChannel* Find(const flow::Carrier& carrier) const;
  PeerChannel* Find(const flow::Carrier& carrier) {
    return const_cast<PeerChannel*>(std::as_const(*this).Find(carrier));
  }
  InFlight UnderWayTo(const wire::Gid& peer) const;
  void Sweep(PeerChannel& entry);

  std::vector<PeerChannel> channels_;
};

}  // namespace rocegw::transport
