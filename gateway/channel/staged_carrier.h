// SPDX-License-Identifier: Apache-2.0
// Send buffer of one untrusted session on one channel. Reading the session's memory may block for
// ever (memory/copier.h), and a frame that has its PSN must leave: all users of the channel would
// wait for it, and its absence would look like congestion. So frames of such a session are built
// and read into buffers of the gateway first, and get a PSN when they are complete. The bytes stay
// until the frame is acknowledged, so resending reads no client memory either. Buffers are bounded;
// a queue pair that finds no space waits.
//
// For its queue pairs it is a carrier; for the channel it is a member of the wait queue. Frames
// leave in the order in which they were created. Belongs to one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gateway/base/containers/growing_ring.h"
#include "gateway/flow/carrier.h"
#include "gateway/port/packet_port.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::channel {

class StagedCarrier;

struct StagedFrame final : port::TxPacket {
  enum class State : uint8_t {
    kReading,  // a copier still reads the bytes
    kReady,
    kSent,
    kDropped,
  };
  StagedCarrier* carrier = nullptr;
  std::unique_ptr<uint8_t[]> bytes;
  size_t room = 0;  // bytes of the buffer
  flow::FrameRef ref;
  Psn psn;  // PSN on the channel, once sent
  State state = State::kReading;

  // Returns the heap of a frame whose buffer has so many bytes: that of a short frame is mostly its
  // own.
  static constexpr size_t CostOf(size_t room);
  size_t cost() const { return room == 0 ? 0 : CostOf(room); }
  // Writes the frame, or reads it into a new one of at most so many bytes (gateway/hand_over).
  void HandOver(hand_over::StateStream& stream, uint32_t most);
};

constexpr size_t StagedFrame::CostOf(size_t room) {
  constexpr size_t kOfAllocations = 32;
  return room + sizeof(StagedFrame) + kOfAllocations;
}

// State that all staged carriers of a session share.
struct StagedOfSession {
  size_t bytes = 0;  // heap of their frames, and of carriers whose channel is gone
  std::vector<StagedCarrier*>* busy = nullptr;  // list to which busy carriers add themselves
};

class StagedCarrier final : public flow::Carrier {
 public:
  // Limits in bytes of heap per channel and per session, in flight or waiting. The first exceeds
  // the usual window of a channel. The second is part of what a session is charged
  // (session/objects/session_costs.h); half of it is for channels that have little, so that peers
  // that take nothing do not stop the session's traffic to others.
  static constexpr size_t kMostHere = size_t{1} << 20;
  static constexpr size_t kMostOfSession = size_t{2} << 20;
  static constexpr size_t kLittle = size_t{128} << 10;
  // Limit of the heap of a carrier without frames. A session has one for each channel by which
  // frames have come for it, whoever sends them, and is charged for all channels of its worker
  // (session/objects/session_costs.h).
  static constexpr size_t kHeapOfCarrier = 512;

  // `me`: owner of the frames and member of the channel's wait queue. `all` lives until
  // OnSessionGone.
  StagedCarrier(flow::Carrier& channel, const flow::WindowWaiter& me, uint32_t device,
                StagedOfSession& all);
  ~StagedCarrier();
  StagedCarrier(const StagedCarrier&) = delete;
  StagedCarrier& operator=(const StagedCarrier&) = delete;

  // flow::Carrier, with PSNs from a number space of its own.
  uint32_t staged_index() const override { return me_.object.slot().index; }
  flow::CarrierAddress address() const override { return address_; }
  const wire::Gid& peer() const override { return channel_->peer(); }
  Qpn number() const override { return channel_->number(); }
  uint32_t max_payload() const override { return channel_->max_payload(); }
  bool MaySend(const flow::WindowWaiter& waiter, flow::WaitEntry& entry, uint32_t bytes,
               TimePoint now) override;
  // Staged frames leave in order even if their queue pair is closing.
  bool MaySendLast(TimePoint now) override;
  Psn OnSent(const flow::WindowWaiter& waiter, flow::WaitEntry& entry, const flow::FrameRef& frame,
             uint32_t bytes, TimePoint now) override;
  bool HasArrived(Psn psn) const override { return PsnBefore(psn, Oldest()); }
  void ReportArrivals() override {
    if (channel_ != nullptr) channel_->ReportArrivals();
  }
  Duration round_trip() const override {
    return channel_ == nullptr ? Duration{} : channel_->round_trip();
  }
  void Hold() override;
  void Release() override;

  // Returns a frame to fill, with space for the payload; OnSent then enters it.
  StagedFrame& NewFrame(uint32_t payload);
  // Returns the frame that was entered last.
  StagedFrame& newest() { return *frames_.back(); }
  // Marks the frame's bytes as read. Length 0: its memory does not exist, and the frame will stay
  // empty.
  void OnReady(StagedFrame& frame);

  // Returns the next frame to leave if its bytes are read; nullptr: none. The caller then drops it,
  // or sends it in `packet` once the channel has window.
  const flow::FrameRef* Next();
  // Returns true if the memory of the next frame did not exist.
  bool NextIsEmpty() const;
  void DropNext();
  bool MayLeave(TimePoint now);
  void Leave(port::TxPacket& packet, TimePoint now);

  // Returns the sent frame with that number, now lost or acknowledged; nullptr: not here any more.
  const flow::FrameRef* Sent(uint32_t number) const;
  void SendAgain(uint32_t number, Psn psn, port::TxPacket& packet) const;

  // Releases acknowledged frames. Returns true if there were any.
  bool Forget();
  // Returns true if a waiting queue pair has space now. `given`: queue pairs already released in
  // this call.
  bool HasTurn(int given) const;
  WorkerObject NextTurn();
  // Reports that the channel's wait queue released this carrier.
  void OnTurn() { place_.waiting = false; }

  // Reports that the channel is gone: nothing leaves any more.
  void OnChannelGone();
  // Reports that the session is gone: lost frames are still resent, unsent ones are dropped.
  void OnSessionGone();

  // Returns true if Forget or NextTurn may have work: there are frames or waiting queue pairs.
  bool busy() const { return !frames_.empty() || !waiting_.empty(); }
  // Returns true if the carrier cannot be used any more.
  bool over() const {
    return (channel_ == nullptr || all_ == nullptr) && holds_ == 0 && frames_.empty();
  }
  const flow::Carrier* channel() const { return channel_; }
  uint32_t device() const { return device_; }
  uint32_t tenant() const { return me_.tenant; }
  bool in_line() const { return place_.waiting; }

  // Reports that the caller removed this carrier from the busy list.
  void LeaveBusy() { listed_ = false; }
  bool listed() const { return listed_; }

  // Writes the state, or reads it into a new carrier that the caller has made for the same channel,
  // wait queue member and session. No frame may be with a copier. Users are not written: those that
  // are handed over hold the carrier.
  void HandOver(hand_over::StateStream& state);

 private:
  // Bytes that one queue pair may stage before the next one.
  static constexpr size_t kQuantum = size_t{16} << 10;

  Psn Oldest() const { return next_ - static_cast<uint32_t>(frames_.size()); }
  bool HasRoom(size_t bytes) const;
  void Drop(StagedFrame& frame);
  void ForgetDropped();
  // Frees the memory of rings that were long and are empty.
  void Shrink();
  void CountItself();
  void BeBusy();
  // Holds the channel while the carrier has users or frames.
  void KeepChannel();
  void Copy(const StagedFrame& frame, Psn psn, port::TxPacket& packet) const;

  flow::Carrier* channel_;  // nullptr: the channel is gone
  flow::WindowWaiter me_;
  uint32_t device_;
  StagedOfSession* all_;  // nullptr: the session is gone
  flow::CarrierAddress address_;
  flow::WaitEntry place_;
  uint32_t holds_ = 0;
  bool keeps_ = false;   // holds the channel
  bool listed_ = false;  // in the busy list
  bool counts_itself_ = false;
  Psn next_;
  size_t used_ = 0;     // bytes of heap that count in StagedOfSession
  size_t leaving_ = 0;  // number of oldest frames that were sent or dropped
  size_t reading_ = 0;
  std::unique_ptr<StagedFrame> fresh_;                // filled but not entered yet
  GrowingRing<std::unique_ptr<StagedFrame>> frames_;  // consecutive numbers, up to next_
  GrowingRing<WorkerObject> waiting_;
};
// The carrier with what its worker knows of it and the shortest rings.
static_assert(sizeof(StagedCarrier) + 128 +
                  8 * (sizeof(std::unique_ptr<StagedFrame>) + sizeof(WorkerObject)) <=
              StagedCarrier::kHeapOfCarrier);

}  // namespace rocegw::channel
