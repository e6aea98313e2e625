// SPDX-License-Identifier: Apache-2.0
#include "gateway/channel/staged_carrier.h"

#include <cstring>
#include <utility>

#include "gateway/wire/channel_header.h"
#include "gateway/wire/codec.h"

namespace rocegw::channel {

using State = StagedFrame::State;

namespace {

// Rings of this length are kept for the next frames.
constexpr size_t kKept = 8;

size_t RoomFor(uint32_t payload) {
  return wire::kBthLength + wire::kMaxFrameLength + payload + (-payload & 3);
}

}  // namespace

StagedCarrier::StagedCarrier(flow::Carrier& channel, const flow::WindowWaiter& me, uint32_t device,
                             StagedOfSession& all)
    : channel_(&channel), me_(me), device_(device), all_(&all) {}

StagedCarrier::~StagedCarrier() {
  if (all_ != nullptr) all_->bytes -= used_;
  if (channel_ != nullptr && keeps_) channel_->Release();
}

void StagedCarrier::Hold() {
  ++holds_;
  KeepChannel();
}

void StagedCarrier::Release() {
  --holds_;
  KeepChannel();
}

void StagedCarrier::KeepChannel() {
  const bool keep = holds_ != 0 || !frames_.empty();
  if (channel_ == nullptr || keep == keeps_) return;
  keeps_ = keep;
  if (keep) {
    channel_->Hold();
  } else {
    channel_->Release();
  }
}

bool StagedCarrier::HasRoom(size_t bytes) const {
  if (channel_ == nullptr || all_ == nullptr || used_ + bytes > kMostHere) return false;
  const size_t most = used_ < kLittle ? kMostOfSession : kMostOfSession / 2;
  return all_->bytes + bytes <= most;
}

bool StagedCarrier::MaySend(const flow::WindowWaiter& waiter, flow::WaitEntry& entry,
                            uint32_t bytes, TimePoint) {
  if (HasRoom(StagedFrame::CostOf(RoomFor(bytes)))) return true;
  if (!entry.waiting) {
    entry.waiting = true;
    waiting_.push_back(waiter.object);
    BeBusy();
  }
  return false;
}

bool StagedCarrier::MaySendLast(TimePoint) { return HasRoom(StagedFrame::CostOf(RoomFor(0))); }

void StagedCarrier::BeBusy() {
  if (listed_ || all_ == nullptr) return;
  listed_ = true;
  all_->busy->push_back(this);
}

StagedFrame& StagedCarrier::NewFrame(uint32_t payload) {
  fresh_ = std::make_unique<StagedFrame>();
  fresh_->carrier = this;
  fresh_->room = RoomFor(payload);
  fresh_->bytes = std::make_unique_for_overwrite<uint8_t[]>(fresh_->room);
  fresh_->data = fresh_->bytes.get();
  return *fresh_;
}

Psn StagedCarrier::OnSent(const flow::WindowWaiter&, flow::WaitEntry&, const flow::FrameRef& frame,
                          uint32_t, TimePoint) {
  fresh_->ref = frame;
  used_ += fresh_->cost();
  all_->bytes += fresh_->cost();
  frames_.push_back(std::move(fresh_));
  KeepChannel();
  BeBusy();
  ++reading_;
  const Psn number = next_;
  next_ = next_ + 1;
  return number;
}

void StagedCarrier::OnReady(StagedFrame& frame) {
  if (frame.state != State::kReading) return;
  --reading_;
  frame.state = State::kReady;
  if (channel_ != nullptr) return;
  Drop(frame);
  ForgetDropped();
}

const flow::FrameRef* StagedCarrier::Next() {
  if (channel_ == nullptr) return nullptr;
  while (leaving_ != frames_.size() && frames_[leaving_]->state == State::kDropped) ++leaving_;
  if (leaving_ == frames_.size()) return nullptr;
  const StagedFrame& frame = *frames_[leaving_];
  return frame.state == State::kReading ? nullptr : &frame.ref;
}

bool StagedCarrier::NextIsEmpty() const { return frames_[leaving_]->length == 0; }

void StagedCarrier::DropNext() {
  Drop(*frames_[leaving_]);
  ++leaving_;
}

// Releases the frame's bytes, possibly before those of older frames.
void StagedCarrier::Drop(StagedFrame& frame) {
  frame.state = State::kDropped;
  used_ -= frame.cost();
  if (all_ != nullptr) all_->bytes -= frame.cost();
  frame.room = 0;
  frame.bytes.reset();
}

bool StagedCarrier::MayLeave(TimePoint now) {
  return channel_->MaySend(me_, place_, frames_[leaving_]->ref.length, now);
}

void StagedCarrier::Leave(port::TxPacket& packet, TimePoint now) {
  StagedFrame& frame = *frames_[leaving_];
  flow::FrameRef ref = frame.ref;
  ref.owner = me_.object;
  ref.message = (Oldest() + static_cast<uint32_t>(leaving_)).value;
  frame.psn = channel_->OnSent(me_, place_, ref, frame.ref.length, now);
  frame.state = State::kSent;
  ++leaving_;
  Copy(frame, frame.psn, packet);
}

// Stamps the frame with the channel's current address: the path may have changed since staging.
void StagedCarrier::Copy(const StagedFrame& frame, Psn psn, port::TxPacket& packet) const {
  const flow::CarrierAddress to = channel_->address();
  std::memcpy(packet.data, frame.data, frame.length);
  // The description tells no padding: its length has another meaning in a reply to a group.
  const uint32_t pad = frame.data[1] >> 4 & 3;
  wire::StampFrame(packet.data + to.EncodeBth(psn, pad, packet.data), to.flags, to.epoch);
  packet.length = frame.length;
  packet.known_crc = {};
  packet.source_qpn = frame.source_qpn;
  packet.path = to.path;
  packet.bundles = to.bundles;
  packet.seal = to.seal;
}

const flow::FrameRef* StagedCarrier::Sent(uint32_t number) const {
  const int32_t at = PsnDistance(Psn(number), Oldest());
  if (channel_ == nullptr || at < 0 || static_cast<size_t>(at) >= leaving_) return nullptr;
  const StagedFrame& frame = *frames_[static_cast<size_t>(at)];
  return frame.state == State::kSent ? &frame.ref : nullptr;
}

void StagedCarrier::SendAgain(uint32_t number, Psn psn, port::TxPacket& packet) const {
  Copy(*frames_[static_cast<size_t>(PsnDistance(Psn(number), Oldest()))], psn, packet);
}

bool StagedCarrier::Forget() {
  const size_t before = frames_.size();
  while (leaving_ != 0) {
    StagedFrame& frame = *frames_.front();
    if (frame.state == State::kSent) {
      if (channel_ != nullptr && !channel_->HasArrived(frame.psn)) break;
      Drop(frame);
    }
    frames_.pop_front();
    --leaving_;
  }
  KeepChannel();
  Shrink();
  CountItself();
  return frames_.size() != before;
}

void StagedCarrier::Shrink() {
  if (frames_.empty() && frames_.capacity() > kKept) frames_ = {};
  if (waiting_.empty() && waiting_.capacity() > kKept) waiting_ = {};
}

bool StagedCarrier::HasTurn(int given) const {
  return !waiting_.empty() &&
         HasRoom(StagedFrame::CostOf(RoomFor(wire::kMaxPayload)) + given * kQuantum);
}

WorkerObject StagedCarrier::NextTurn() {
  const WorkerObject next = waiting_.front();
  waiting_.pop_front();
  return next;
}

// Removes dropped frames at the front. A frame that is being read stays: a copier writes to its
// buffer.
void StagedCarrier::ForgetDropped() {
  while (!frames_.empty() && frames_.front()->state == State::kDropped) frames_.pop_front();
  Shrink();
  CountItself();
}

// Counts the carrier in the session's heap while it outlives its channel: the session may get
// another one in its place.
void StagedCarrier::CountItself() {
  const bool counts = channel_ == nullptr && !frames_.empty();
  if (all_ == nullptr || counts == counts_itself_) return;
  counts_itself_ = counts;
  used_ = counts ? used_ + kHeapOfCarrier : used_ - kHeapOfCarrier;
  all_->bytes = counts ? all_->bytes + kHeapOfCarrier : all_->bytes - kHeapOfCarrier;
}

void StagedCarrier::OnChannelGone() {
  if (channel_ == nullptr) return;
  for (size_t i = 0; i < frames_.size(); ++i) {
    const State state = frames_[i]->state;
    if (state == State::kReady || state == State::kSent) Drop(*frames_[i]);
  }
  leaving_ = 0;
  waiting_.clear();
  if (keeps_) channel_->Release();
  channel_ = nullptr;
  ForgetDropped();
}

void StagedCarrier::OnSessionGone() {
  reading_ = 0;
  while (frames_.size() != leaving_) {
    Drop(*frames_.back());
    frames_.pop_back();
    next_ = next_ - 1;
  }
  waiting_.clear();
  all_->bytes -= used_;
  all_ = nullptr;
  KeepChannel();
}

}  // namespace rocegw::channel
