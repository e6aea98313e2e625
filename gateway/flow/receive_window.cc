// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/receive_window.h"

#include <algorithm>
#include <bit>

namespace rocegw::flow {
namespace {

constexpr uint32_t kBitsPerWord = 64;

uint32_t BitOf(Psn psn) { return psn.value % kMaxFlowPackets; }

}  // namespace

void ReceiveWindow::Start(Psn first, uint32_t window_packets) {
  Stop();
  next_ = first;
  marked_ = 0;
  duplicates_ = 0;
  SetWindow(window_packets);
}

void ReceiveWindow::Resume(const RestingWindow& resting, uint32_t window_packets) {
  Start(resting.next, window_packets);
  marked_ = resting.marked;
  duplicates_ = resting.duplicates;
}

void ReceiveWindow::Stop() {
  if (bitmap_ != nullptr) bitmap_->pool->GiveBack(bitmap_);
  bitmap_ = nullptr;
  OnAckSent();
}

void ReceiveWindow::SetWindow(uint32_t packets) {
  window_ = std::min(packets, kMaxFlowPackets) & 0x1FFF;
}

bool ReceiveWindow::Arrived(Psn psn) const {
  if (bitmap_ == nullptr || !PsnBefore(psn, bitmap_->end)) return false;
  const uint32_t bit = BitOf(psn);
  return (bitmap_->arrived[bit / kBitsPerWord] >> bit % kBitsPerWord & 1) != 0;
}

Admission ReceiveWindow::Check(Psn psn) const {
  const int32_t ahead = PsnDistance(psn, next_);
  if (ahead < 0 || Arrived(psn)) return Admission::kDuplicate;
  return static_cast<uint32_t>(ahead) < window_ ? Admission::kNew : Admission::kBeyond;
}

void ReceiveWindow::Mark(LedgerPool& pool, Psn psn) {
  if (bitmap_ == nullptr) {
    bitmap_ = pool.TakePage();
    bitmap_->end = next_;
    bitmap_->beyond = 0;
  }
  const uint32_t bit = BitOf(psn);
  bitmap_->arrived[bit / kBitsPerWord] |= uint64_t{1} << bit % kBitsPerWord;
  ++bitmap_->beyond;
  if (!PsnBefore(psn, bitmap_->end)) bitmap_->end = psn + 1;
}

// Advances past next_, which has arrived, and past all packets that follow without a hole.
void ReceiveWindow::Advance() {
  next_ = next_ + 1;
  if (bitmap_ == nullptr) return;
  // The hole is filled, and packets behind it may be complete now: acknowledge at once.
  ack_now_ = 1;
  for (;;) {
    const uint32_t bit = BitOf(next_);
    uint64_t& word = bitmap_->arrived[bit / kBitsPerWord];
    const uint32_t shift = bit % kBitsPerWord;
    const auto run = static_cast<uint32_t>(std::countr_one(word >> shift));
    if (run == 0) break;
    const uint64_t ones = run >= kBitsPerWord ? ~uint64_t{0} : (uint64_t{1} << run) - 1;
    word &= ~(ones << shift);
    bitmap_->beyond -= run;
    next_ = next_ + run;
    if (bitmap_->beyond == 0) break;
  }
  if (bitmap_->beyond != 0) return;
  bitmap_->pool->GiveBack(bitmap_);
  bitmap_ = nullptr;
}

Admission ReceiveWindow::Admit(LedgerPool& pool, Psn psn, TimePoint now, bool ack_wanted) {
  const Admission admission = Check(psn);
  newest_ = Ticks(now);
  if (ack_wanted || admission != Admission::kNew) ack_now_ = 1;
  if (admission == Admission::kDuplicate) ++duplicates_;
  if (admission != Admission::kNew) return admission;
  if (unacked_ < kAckEvery) ++unacked_;
  if (unacked_ == kAckEvery) ack_now_ = 1;
  if (psn == next_) {
    Advance();
  } else {
    Mark(pool, psn);
    ack_now_ = 1;
  }
  return admission;
}

uint32_t ReceiveWindow::holes() const {
  if (bitmap_ == nullptr) return 0;
  return static_cast<uint32_t>(PsnDistance(bitmap_->end, next_)) - bitmap_->beyond;
}

Duration ReceiveWindow::held(TimePoint now) const {
  return Nanoseconds(int64_t{Ticks(now) - newest_} << 6);
}

TimePoint ReceiveWindow::ack_deadline(TimePoint now) const {
  if (ack_now_ != 0) return now;
  if (unacked_ == 0) return kNever;
  return now + std::max(kAckDelay - held(now), Duration{});
}

uint32_t ReceiveWindow::FillBitmap(std::span<uint32_t> words) const {
  if (bitmap_ == nullptr) return 0;
  const Psn first = next_ + 1;
  const auto bits = static_cast<uint32_t>(PsnDistance(bitmap_->end, first));
  const uint32_t count = std::min((bits + 31) / 32, static_cast<uint32_t>(words.size()));
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t bit = BitOf(first + i * 32);
    const uint32_t word = bit / kBitsPerWord;
    const uint32_t shift = bit % kBitsPerWord;
    uint64_t value = bitmap_->arrived[word] >> shift;
    if (shift > 32) {
      value |= bitmap_->arrived[(word + 1) % bitmap_->arrived.size()] << (kBitsPerWord - shift);
    }
    words[i] = static_cast<uint32_t>(value);
  }
  return count;
}

}  // namespace rocegw::flow
