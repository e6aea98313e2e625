// SPDX-License-Identifier: Apache-2.0
// What a worker does for its channels: packets and their way out, queue pairs that build lost
// frames again and that wait for room, timers.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/flow/carrier.h"
#include "gateway/port/packet_port.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::channel {

class Owner {
 public:
  // A packet to fill, or nullptr when the device's port has none.
  virtual port::TxPacket* NewChannelPacket(uint32_t device) = 0;
  // Bytes of a datagram, ICRC included, that the device's port takes for that peer.
  virtual size_t MaxDatagram(uint32_t device, const wire::Gid& peer) const = 0;
  // Takes the packet.
  virtual void SendChannelPacket(uint32_t device, port::TxPacket* packet) = 0;
  // A frame was lost: its queue pair sends it again under its PSN.
  virtual flow::Resend BuildAgain(const flow::Carrier& carrier, const flow::FrameRef& frame,
                                  Psn psn) = 0;
  // Nobody builds it any more: `frame` is the one that was lost, which needs no payload; false: it
  // cannot be told.
  virtual bool AnswerOfDeparted(const flow::FrameRef&, wire::ChannelFrame& /*frame*/) {
    return false;
  }
  // A frame has arrived, of a channel that was asked to tell.
  virtual void OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) = 0;
  // It stood in line, and may send now.
  virtual void OnTurn(const flow::Carrier& carrier, SlotHandle qp) = 0;
  // That channel is gone: whoever uses it must let go of it before this returns. `opened`: it has
  // been of use; else nothing has ever left by it.
  virtual void OnChannelGone(const flow::Carrier& carrier, bool opened,
                             wire::ChannelReason why) = 0;
  // After that, and also of one that nobody used: its place is another channel's next.
  virtual void OnPlaceFree(uint32_t /*slot*/) {}
  // Calls ChannelSet::OnTimer(slot) then, or a little later; a new time does not undo the old one.
  virtual void ArmChannel(uint32_t slot, TimePoint when) = 0;

 protected:
  ~Owner() = default;
};

}  // namespace rocegw::channel
