// SPDX-License-Identifier: Apache-2.0
// Interface of a worker to its channels: sends packets, has queue pairs rebuild lost frames, wakes
// waiting queue pairs and keeps timers.
#pragma once

#include <cstdint>

#include "gateway/base/time.h"
#include "gateway/flow/carrier.h"
#include "gateway/port/packet_port.h"
#include "gateway/wire/channel_header.h"

namespace rocegw::channel {

class Owner {
 public:
  // Returns a packet to fill, or nullptr if the device's port has no buffer.
  virtual port::TxPacket* NewChannelPacket(uint32_t device) = 0;
  // Returns the longest datagram in bytes, ICRC included, that the device's port sends to that
  // peer; 0: there is no such device.
  virtual size_t MaxDatagram(uint32_t device, const wire::Gid& peer) const = 0;
  // Takes ownership of the packet.
  virtual void SendChannelPacket(uint32_t device, port::TxPacket* packet) = 0;
  // Asks the queue pair to send a lost frame again under its PSN.
  virtual flow::Resend BuildAgain(const flow::Carrier& carrier, const flow::FrameRef& frame,
                                  Psn psn) = 0;
  // Fills in the lost frame of a destroyed queue pair; such a frame has no payload. Returns false
  // if it is not known any more.
  virtual bool AnswerFromTombstone(const flow::FrameRef&, wire::ChannelFrame& /*frame*/) {
    return false;
  }
  // Reports that the peer acknowledged a frame; called for channels after ReportArrivals.
  virtual void OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) = 0;
  // Reports that a queue pair left the wait queue and may send now.
  virtual void OnTurn(const flow::Carrier& carrier, WorkerObject member) = 0;
  // Reports that a channel is gone: every user must release it before this returns. `opened`: the
  // channel was open; otherwise no frame ever left.
  virtual void OnChannelGone(const flow::Carrier& carrier, bool opened,
                             wire::ChannelReason why) = 0;
  // Reports that a channel is about to be removed, after OnChannelGone and also for an unused
  // channel. The next channel may take its slot.
  virtual void OnRemove(const flow::Carrier& /*carrier*/, uint32_t /*slot*/) {}
  // Arms a timer: ChannelSet::OnTimer(slot) is called at that time or a little later. A new time
  // does not cancel an earlier one.
  virtual void ArmChannel(uint32_t slot, TimePoint when) = 0;

 protected:
  ~Owner() = default;
};

}  // namespace rocegw::channel
