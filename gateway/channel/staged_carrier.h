// SPDX-License-Identifier: Apache-2.0
// What one untrusted session sends on one channel, in front of it. The session's memory may keep
// whoever reads it waiting for ever (memory/copier.h), and a frame that has got its PSN must leave:
// all that share the channel would wait for it, and take its absence for congestion. So its queue
// pairs send through this: frames are built and read here, in bytes of the gateway's own, and enter
// the channel complete. They are kept until they have arrived: sending one again reads no client
// memory either. Bounded; whoever finds no room is told when there is some.
//
// To its queue pairs it is their carrier; to the channel it is one who waits in line. Frames leave
// in the order in which they were entered. Belongs to one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/flow/carrier.h"
#include "gateway/port/packet_port.h"

namespace rocegw::channel {

class StagedCarrier;

struct StagedFrame final : port::TxPacket {
  enum class State : uint8_t {
    kReading,  // its bytes are not there yet
    kReady,
    kSent,
    kDropped,
  };
  StagedCarrier* carrier = nullptr;
  std::unique_ptr<uint8_t[]> bytes;
  size_t room = 0;  // bytes
  flow::FrameRef ref;
  Psn psn;  // the channel's, once it was sent
  State state = State::kReading;
};

// What all staged carriers of a session share.
struct StagedOfSession {
  size_t bytes = 0;                             // that they keep
  std::vector<StagedCarrier*>* busy = nullptr;  // to which those add themselves that are
};

class StagedCarrier final : public flow::Carrier {
 public:
  // So much of one session may be under way, or wait, on one channel and on all. The first is more
  // than a channel's window mostly is.
  static constexpr size_t kMostHere = size_t{1} << 20;
  static constexpr size_t kMostOfSession = size_t{16} << 20;

  // `me`: who its frames and its place in the channel's line belong to. `all` lives until
  // OnSessionGone.
  StagedCarrier(flow::Carrier& channel, const flow::LineMember& me, uint32_t device,
                StagedOfSession& all);
  ~StagedCarrier();
  StagedCarrier(const StagedCarrier&) = delete;
  StagedCarrier& operator=(const StagedCarrier&) = delete;

  // flow::Carrier. PSNs are numbers of its own.
  flow::CarrierAddress address() const override { return address_; }
  const wire::Gid& peer() const override { return channel_->peer(); }
  Qpn number() const override { return channel_->number(); }
  uint32_t max_payload() const override { return channel_->max_payload(); }
  bool MaySend(const flow::LineMember& who, flow::LinePlace& place, uint32_t bytes,
               TimePoint now) override;
  // What stands here leaves in its turn, whoever has ended.
  bool MaySendLast(TimePoint now) override;
  Psn OnSent(const flow::LineMember& who, flow::LinePlace& place, const flow::FrameRef& frame,
             uint32_t bytes, TimePoint now) override;
  bool HasArrived(Psn psn) const override { return PsnBefore(psn, Oldest()); }
  void TellArrivals() override {
    if (channel_ != nullptr) channel_->TellArrivals();
  }
  Duration round_trip() const override {
    return channel_ == nullptr ? Duration{} : channel_->round_trip();
  }
  void Hold() override;
  void Release() override;

  // A frame to fill, with room for so many payload bytes; the next that is entered (OnSent).
  StagedFrame& NewFrame(uint32_t payload);
  // Its bytes are there; none, length 0: they never will be.
  void OnReady(StagedFrame& frame);

  // The next to leave, when its bytes are there; nullptr: there is none. It is of no use any more,
  // or leaves when the channel has room for it: in `packet`, which then belongs to the caller.
  const flow::FrameRef* Next();
  // Its memory was not there.
  bool NextIsEmpty() const;
  void DropNext();
  bool MayLeave(TimePoint now);
  void Leave(port::TxPacket& packet, TimePoint now);

  // One that was sent under that number, and is lost or has arrived now; nullptr: it is not here
  // any more.
  const flow::FrameRef* Sent(uint32_t number) const;
  void SendAgain(uint32_t number, Psn psn, port::TxPacket& packet) const;

  // Forgets what has arrived; true when something had.
  bool Forget();
  // Who stands in line and has room now, when so many others have just been given their turns.
  bool HasTurn(int given) const;
  SlotHandle NextTurn();
  // It waits no longer in the channel's line.
  void OnTurn() { place_.waiting = false; }

  // The channel is no more: nothing leaves.
  void OnChannelGone();
  // Whoever filled its frames is gone with the session: what was sent is sent again when it is
  // lost, and nothing else leaves.
  void OnSessionGone();

  // It has frames, or somebody waits: Forget and NextTurn have something to do.
  bool busy() const { return !frames_.empty() || !waiting_.empty(); }
  // Nobody can use it any more.
  bool over() const {
    return (channel_ == nullptr || all_ == nullptr) && holds_ == 0 && frames_.empty();
  }
  const flow::Carrier* channel() const { return channel_; }
  SlotHandle handle() const { return me_.qp; }
  uint32_t device() const { return device_; }
  bool in_line() const { return place_.waiting; }

  // By who has found it in the list.
  void LeaveBusy() { listed_ = false; }
  bool listed() const { return listed_; }

 private:
  // A turn of a queue pair.
  static constexpr size_t kQuantum = size_t{16} << 10;

  Psn Oldest() const { return next_ - static_cast<uint32_t>(frames_.size()); }
  bool HasRoom(size_t bytes) const;
  void Drop(StagedFrame& frame);
  void ForgetDropped();
  void BeBusy();
  // The channel is held as long as somebody holds this, or it has frames.
  void KeepChannel();
  void Copy(const StagedFrame& frame, Psn psn, port::TxPacket& packet) const;

  flow::Carrier* channel_;  // nullptr: it is gone
  flow::LineMember me_;
  uint32_t device_;
  StagedOfSession* all_;  // nullptr: the session is gone
  flow::CarrierAddress address_;
  flow::LinePlace place_;
  uint32_t holds_ = 0;
  bool keeps_ = false;   // it holds the channel
  bool listed_ = false;  // among those that are busy
  Psn next_;
  size_t used_ = 0;     // bytes
  size_t leaving_ = 0;  // so many frames were sent or dropped, the oldest
  size_t reading_ = 0;
  std::unique_ptr<StagedFrame> fresh_;                // not entered yet
  GrowingRing<std::unique_ptr<StagedFrame>> frames_;  // consecutive numbers, up to next_
  GrowingRing<SlotHandle> waiting_;
};

}  // namespace rocegw::channel
