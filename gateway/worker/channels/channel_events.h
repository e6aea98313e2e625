// SPDX-License-Identifier: Apache-2.0
// Events of a worker's channels (channel/owner.h): lost and arrived frames, turns and lost channels
// go to the queue pairs and staged carriers that they concern, packets to the ports. Belongs to one
// worker.
#pragma once

#include <cstdint>

#include "gateway/base/timing/timer_wheel.h"
#include "gateway/channel/owner.h"
#include "gateway/worker/channels/channel_bindings.h"
#include "gateway/worker/objects/group_table.h"
#include "gateway/worker/objects/tombstones.h"

namespace rocegw::worker {

class ChannelEvents final : public channel::Owner {
 public:
  // Parts of the worker that the object uses; they must outlive it.
  struct Uses {
    const Ports& ports;
    TransmitQueue& transmit;
    TimerWheel& wheel;
    QpTable& qps;
    QpActivity& activity;
    GroupTable& groups;
    const Tombstones& tombstones;
    StagedFrames& staged;
    ChannelBindings& bindings;
    ControlSender& control;
    transport::Outbox& outbox;
    const Round& round;
  };
  explicit ChannelEvents(const Uses& uses) : uses_(uses) {}

  port::TxPacket* NewChannelPacket(uint32_t device) override {
    return uses_.transmit.Acquire(device);
  }
  size_t MaxDatagram(uint32_t device, const wire::Gid& peer) const override {
    return device < uses_.ports.size() ? uses_.ports[device]->limits().MaxDatagramTo(peer) : 0;
  }
  void SendChannelPacket(uint32_t device, port::TxPacket* packet) override {
    uses_.transmit.Add({packet, device});
  }
  flow::Resend BuildAgain(const flow::Carrier& carrier, const flow::FrameRef& frame,
                          Psn psn) override;
  bool AnswerFromTombstone(const flow::FrameRef& lost, wire::ChannelFrame& frame) override {
    return uses_.tombstones.Answer(lost, frame);
  }
  void OnArrived(const flow::Carrier& carrier, const flow::FrameRef& frame) override;
  void OnTurn(const flow::Carrier& carrier, WorkerObject member) override;
  void OnChannelGone(const flow::Carrier& carrier, bool opened, wire::ChannelReason why) override;
  void OnRemove(const flow::Carrier& carrier, uint32_t slot) override {
    // Staged carriers without users and frames know the channel, too.
    uses_.staged.OnChannelGone(carrier);
    uses_.bindings.references().OnChannelGone(slot);
  }
  void ArmChannel(uint32_t slot, TimePoint when) override {
    uses_.wheel.Arm({WorkerObject::Kind::kChannel, {slot, 0}}, when);
  }

 private:
  const Uses uses_;
};

}  // namespace rocegw::worker
