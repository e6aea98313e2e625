// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/selective_flow.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "gateway/base/invariant.h"

namespace rocegw::flow {
namespace {

// Numbers of transmissions. kLongAgo exceeds what is ever in flight; kOrderAge is the interval at
// which remembered orders are moved up, so that serial comparison stays valid.
constexpr int32_t kLongAgo = 1 << 30;
constexpr uint32_t kOrderAge = 1u << 28;

// Compares transmission orders with serial number arithmetic.
bool Before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

uint32_t Clamp32(int64_t ns) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ns, 1, std::numeric_limits<uint32_t>::max()));
}

uint64_t LowBits(uint32_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// Returns `count` (at most 64) bits from bit `from` on; bits beyond the words are 0.
uint64_t BitsAt(std::span<const uint32_t> words, uint32_t from, uint32_t count) {
  const size_t word = from / 32;
  const uint32_t shift = from % 32;
  const auto at = [&](size_t i) { return i < words.size() ? uint64_t{words[i]} : 0; };
  uint64_t bits = (at(word) | at(word + 1) << 32) >> shift;
  if (shift != 0) bits |= at(word + 2) << (64 - shift);
  return bits & LowBits(count);
}

}  // namespace

// Summary of what one acknowledgement newly acknowledges.
struct SelectiveFlow::Newest {
  TimePoint now;
  Duration held;
  uint64_t acked_bytes = 0;
  bool found = false;  // a transmission is known to be the one that arrived
  bool late = false;   // a packet that was called lost has arrived
  bool resent = false;
  uint32_t order = 0;
  TimePoint sent;
};

void SelectiveFlow::Start(const SelectiveConfig& config, Psn first, TimePoint now) {
  Stop();
  una_ = next_ = first;
  limit_ = first + std::min(config.room_packets, kMaxFlowPackets);
  max_packets_ =
      static_cast<uint16_t>(std::clamp<uint32_t>(config.max_packets, 1, kMaxFlowPackets));
  marked_ = 0;
  reorder_level_ = duplicates_ = 0;
  lost_ = resent_ = spurious_ = 0;
  probe_number_ = 0;
  rtt_ = RttEstimator(config.rtt);
  timer_ = now;
  cc_ = MakeCc(config.cc, now);
}

void SelectiveFlow::Stop() {
  if (directory_ != nullptr) {
    LedgerPool& pool = *directory_->pool;
    for (RecordChunk* chunk : directory_->chunks) {
      if (chunk != nullptr) pool.GiveBack(chunk);
    }
    pool.GiveBack(directory_);
    directory_ = nullptr;
  }
  una_ = next_;
  in_flight_ = order_ = newest_ = newest_rtt_ = probe_order_ = episode_ = 0;
  flight_ = missing_ = {kNone, kNone};
  flying_ = waiting_ = unasked_ = 0;
  probes_ = calm_ = 0;
}

RestingFlow SelectiveFlow::Rest() const {
  RestingFlow resting{.rtt = rtt_,
                      .next = next_,
                      .marked = marked_,
                      .window = Clamp32(static_cast<int64_t>(cc_window())),
                      .lost = lost_,
                      .resent = resent_,
                      .spurious = spurious_,
                      .room = static_cast<uint16_t>(PsnDistance(limit_, next_)),
                      .duplicates = duplicates_};
  resting.reorder_level = reorder_level_ & 7;
  resting.kind = static_cast<uint8_t>(cc_.kind) & 31;
  return resting;
}

void SelectiveFlow::Resume(const RestingFlow& resting, const CcConfig& cc, TimePoint now) {
  SelectiveConfig config{.cc = cc, .room_packets = resting.room};
  config.cc.kind = resting.cc_kind();
  Start(config, resting.next, now);
  rtt_ = resting.rtt;
  marked_ = resting.marked;
  reorder_level_ = resting.reorder_level;
  duplicates_ = resting.duplicates;
  lost_ = resting.lost;
  resent_ = resting.resent;
  spurious_ = resting.spurious;
  // Probe numbers restart from the PSN: since an earlier rest the flow has sent, so the number
  // differs and a late answer cannot match.
  probe_number_ = resting.next.value << 8;
  // Without a round trip sample nothing was acknowledged, so there is nothing to take over.
  if (!rtt_.has_sample()) return;
  AlgorithmOf(cc_.kind).take_over(cc_, {resting.window, rtt_.smoothed()}, now);
}

CcState SelectiveFlow::MakeCc(const CcConfig& config, TimePoint now) const {
  CcState cc;
  cc.kind = config.kind;
  AlgorithmOf(cc.kind).init(cc, config, now);
  return cc;
}

uint64_t SelectiveFlow::cc_window() const {
  return AlgorithmOf(cc_.kind).window(cc_, rtt_.smoothed());
}

void SelectiveFlow::SwitchCc(const CcConfig& cc, TimePoint now) {
  const CcOperatingPoint point{cc_window(), rtt_.smoothed()};
  cc_ = MakeCc(cc, now);
  AlgorithmOf(cc_.kind).take_over(cc_, point, now);
}

bool SelectiveFlow::HasPlace() const {
  const auto span = static_cast<uint32_t>(PsnDistance(next_, una_));
  return span < max_packets_ && PsnBefore(next_, limit_);
}

bool SelectiveFlow::MaySend(uint64_t bytes, TimePoint now) const {
  return HasPlace() && MayResend(bytes, now);
}

bool SelectiveFlow::MayResend(uint64_t bytes, TimePoint now) const {
  const SendGate gate = AlgorithmOf(cc_.kind).gate(cc_, in_flight_);
  if (gate.earliest > now) return false;
  return flying_ == 0 || bytes <= gate.bytes;
}

TimePoint SelectiveFlow::earliest(uint64_t bytes) const {
  const SendGate gate = AlgorithmOf(cc_.kind).gate(cc_, in_flight_);
  const bool fits = flying_ == 0 || bytes <= gate.bytes;
  return fits && gate.earliest.ns > 0 ? gate.earliest : kNever;
}

const SentRecord* SelectiveFlow::Find(Psn psn) const {
  if (directory_ == nullptr) return nullptr;
  const uint32_t slot = SlotOf(psn);
  const RecordChunk* chunk = directory_->chunks[slot / kRecordsPerChunk];
  if (chunk == nullptr || (chunk->live >> slot % kRecordsPerChunk & 1) == 0) return nullptr;
  return &chunk->records[slot % kRecordsPerChunk];
}

void SelectiveFlow::Append(List& list, uint32_t slot) {
  SentRecord& record = At(slot);
  record.before = list.last;
  record.after = kNone;
  (list.last == kNone ? list.first : At(list.last).after) = static_cast<uint16_t>(slot);
  list.last = static_cast<uint16_t>(slot);
}

void SelectiveFlow::Remove(List& list, const SentRecord& record) {
  (record.before == kNone ? list.first : At(record.before).after) = record.after;
  (record.after == kNone ? list.last : At(record.after).before) = record.before;
}

void SelectiveFlow::EnterFlight(SentRecord& record, uint32_t slot, TimePoint now) {
  record.order = order_++;
  record.sent = now;
  Append(flight_, slot);
  if (flying_++ == 0) timer_ = now;
  in_flight_ += record.bytes;
  unasked_ = static_cast<uint16_t>(std::min<uint32_t>(unasked_ + (record.bytes + 63) / 64, 0xFFFF));
  AlgorithmOf(cc_.kind).on_sent(cc_, record.bytes, now);
}

Psn SelectiveFlow::OnSent(LedgerPool& pool, const FrameRef& frame, uint32_t bytes, TimePoint now) {
  const Psn psn = next_;
  const auto span = static_cast<uint32_t>(PsnDistance(next_, una_));
  if (!ROCEGW_INVARIANT(span < kMaxFlowPackets, "selective-flow-window")) return psn;
  if (directory_ == nullptr) directory_ = pool.TakePage();
  const uint32_t slot = SlotOf(psn);
  RecordChunk*& chunk = directory_->chunks[slot / kRecordsPerChunk];
  if (chunk == nullptr) chunk = pool.TakeChunk();
  chunk->live |= uint64_t{1} << slot % kRecordsPerChunk;
  SentRecord& record = chunk->records[slot % kRecordsPerChunk];
  record.frame = frame;
  record.bytes = bytes & 0x3FFFFFFF;
  record.lost = record.resent = 0;
  EnterFlight(record, slot, now);
  next_ = next_ + 1;
  return psn;
}

bool SelectiveFlow::AsksForAck() {
  if (unasked_ == 0) return false;
  if (uint64_t{unasked_} * 64 * 4 < cc_window()) return false;
  unasked_ = 0;
  return true;
}

bool SelectiveFlow::NextLost(Psn& psn, FrameRef& frame, uint32_t& bytes) const {
  if (packets_lost() == 0) return false;
  const SentRecord& record = At(missing_.first);
  psn = PsnOf(missing_.first);
  frame = record.frame;
  bytes = record.bytes;
  return true;
}

void SelectiveFlow::OnResent(Psn psn, TimePoint now) {
  const bool lost = Find(psn) != nullptr && Find(psn)->lost != 0;
  if (!ROCEGW_INVARIANT(lost, "selective-flow-resent")) return;
  const uint32_t slot = SlotOf(psn);
  SentRecord& record = At(slot);
  Remove(missing_, record);
  --waiting_;
  record.lost = 0;
  record.resent = 1;
  ++resent_;
  EnterFlight(record, slot, now);
}

void SelectiveFlow::AckRecord(const SentRecord& record, Newest& newest) {
  newest.acked_bytes += record.bytes;
  if (record.lost != 0) {
    Remove(missing_, record);
    --waiting_;
    newest.late = true;
    ++spurious_;
    return;
  }
  Remove(flight_, record);
  --flying_;
  in_flight_ -= record.bytes;
  // The answer came too soon for the retransmission: the original may have arrived. Packets sent
  // between the two are then not overdue.
  if (record.resent != 0 && newest.now - record.sent - newest.held < rtt_.minimum() * 3 / 4) return;
  if (newest.found && Before(record.order, newest.order)) return;
  newest.found = true;
  newest.order = record.order;
  newest.sent = record.sent;
  newest.resent = record.resent != 0;
}

// Marks PSNs as arrived whose bit is set. `first` is the PSN of bit 0; all lie in one chunk.
void SelectiveFlow::AckPiece(LedgerPool& pool, Psn first, uint32_t count, uint64_t bits,
                             AckedSink& sink, Newest& newest) {
  const uint32_t slot = SlotOf(first);
  RecordChunk*& chunk = directory_->chunks[slot / kRecordsPerChunk];
  if (chunk == nullptr) return;
  const uint32_t shift = slot % kRecordsPerChunk;
  uint64_t arrived = (bits & LowBits(count)) << shift & chunk->live;
  chunk->live &= ~arrived;
  for (; arrived != 0; arrived &= arrived - 1) {
    const auto index = static_cast<uint32_t>(std::countr_zero(arrived));
    const SentRecord& record = chunk->records[index];
    AckRecord(record, newest);
    sink.OnFrameAcked(first + (index - shift), record.frame);
  }
  if (chunk->live != 0) return;
  pool.GiveBack(chunk);
  chunk = nullptr;
}

void SelectiveFlow::AckBitmap(LedgerPool& pool, const AckInfo& ack, AckedSink& sink,
                              Newest& newest) {
  const auto behind = PsnDistance(next_, ack.next) - 1;
  if (behind <= 0) return;
  const auto told =
      static_cast<uint32_t>(std::min<size_t>(ack.bitmap.size(), kMaxFlowPackets / 32));
  const uint32_t end = std::min(static_cast<uint32_t>(behind), told * 32);
  const Psn first = ack.next + 1;
  for (uint32_t at = 0; at < end;) {
    const uint32_t left = kRecordsPerChunk - SlotOf(first + at) % kRecordsPerChunk;
    const uint32_t count = std::min(end - at, left);
    if (const uint64_t bits = BitsAt(ack.bitmap, at, count); bits != 0) {
      AckPiece(pool, first + at, count, bits, sink, newest);
    }
    at += count;
  }
}

bool SelectiveFlow::OnAck(LedgerPool& pool, const AckInfo& ack, TimePoint now, AckedSink& sink) {
  if (PsnBefore(ack.next, una_) || PsnAfter(ack.next, next_)) return false;
  Newest newest{.now = now, .held = std::max(ack.held, Duration{})};
  const uint64_t in_flight_before = in_flight_;
  if (directory_ != nullptr) {
    for (Psn psn = una_; psn != ack.next;) {
      const uint32_t left = kRecordsPerChunk - SlotOf(psn) % kRecordsPerChunk;
      const uint32_t count = std::min(left, static_cast<uint32_t>(PsnDistance(ack.next, psn)));
      AckPiece(pool, psn, count, ~uint64_t{0}, sink, newest);
      psn = psn + count;
    }
    AckBitmap(pool, ack, sink, newest);
  }
  una_ = ack.next;
  limit_ = ack.next + std::min(ack.room_packets, kMaxFlowPackets);
  timer_ = now;
  LearnFrom(ack, newest, in_flight_before, sink, now);
  if (ack.probe != 0 && ack.probe == probe_number_) {
    while (flying_ != 0 && Before(At(flight_.first).order, probe_order_)) DeclareOldestLost(now);
  }
  probes_ = 0;
  FindLost(now);
  if (idle() && directory_ != nullptr) {
    pool.GiveBack(directory_);
    directory_ = nullptr;
  }
  return true;
}

void SelectiveFlow::LearnFrom(const AckInfo& ack, const Newest& newest, uint64_t in_flight_before,
                              AckedSink& sink, TimePoint now) {
  const auto again = static_cast<uint8_t>(ack.duplicates_running - duplicates_);
  // A step of less than half the range is new; otherwise the acknowledgement is an older one.
  if (again != 0 && again < 128) {
    duplicates_ = ack.duplicates_running;
    spurious_ += again;
  }
  if (newest.late || (again != 0 && again < 128)) OnLate();
  CcFeedback feedback{
      .acked_bytes = newest.acked_bytes, .in_flight_before = in_flight_before, .hint = ack.hint};
  if (newest.found) {
    const Duration rtt{Clamp32((now - newest.sent - newest.held).ns)};
    if (Before(newest_, newest.order) || newest_rtt_ == 0) NoteNewest(newest, rtt);
    // The original of a retransmitted packet may have arrived (Karn's algorithm).
    if (!newest.resent) {
      rtt_.OnSample(rtt);
      feedback.rtt = rtt;
    }
  }
  if (newest.acked_bytes == 0) return;
  if (const uint32_t marked = ack.marked_bytes_running - marked_;
      static_cast<int32_t>(marked) > 0) {
    marked_ = ack.marked_bytes_running;
    feedback.marked_bytes = std::min<uint64_t>(marked, newest.acked_bytes);
  }
  AlgorithmOf(cc_.kind).on_feedback(cc_, feedback, now);
  sink.OnFeedback(feedback);
}

void SelectiveFlow::NoteNewest(const Newest& newest, Duration rtt) {
  const bool aged = newest_ / kOrderAge != newest.order / kOrderAge;
  newest_ = newest.order;
  newest_rtt_ = static_cast<uint32_t>(rtt.ns);
  if (!aged) return;
  // Orders compare over a distance of 2^31 only, so remembered orders are moved up.
  if (static_cast<int32_t>(newest_ - episode_) > kLongAgo) episode_ = newest_ - kLongAgo / 2;
  if (static_cast<int32_t>(newest_ - probe_order_) > kLongAgo)
    probe_order_ = newest_ - kLongAgo / 2;
}

void SelectiveFlow::OnLate() {
  calm_ = 0;
  reorder_level_ = std::min<uint8_t>(reorder_level_ + 1, kMaxReorderLevel);
}

Duration SelectiveFlow::ReorderTime() const {
  const Duration time = rtt_.minimum() / 4 * (1 + reorder_level_);
  return std::min(time, std::max(rtt_.smoothed(), rtt_.minimum() / 4));
}

TimePoint SelectiveFlow::ReorderDeadline() const {
  if (flying_ == 0 || newest_rtt_ == 0) return kNever;
  const SentRecord& oldest = At(flight_.first);
  if (!Before(oldest.order, newest_)) return kNever;
  return oldest.sent + Nanoseconds(newest_rtt_) + ReorderTime();
}

void SelectiveFlow::FindLost(TimePoint now) {
  const uint32_t threshold = kReorderPackets << reorder_level_;
  while (flying_ != 0 && newest_rtt_ != 0) {
    const SentRecord& oldest = At(flight_.first);
    if (!Before(oldest.order, newest_)) return;
    if (newest_ - oldest.order < threshold && ReorderDeadline() > now) return;
    DeclareOldestLost(now);
  }
}

void SelectiveFlow::DeclareOldestLost(TimePoint now) {
  const uint16_t slot = flight_.first;
  SentRecord& record = At(slot);
  Remove(flight_, record);
  --flying_;
  in_flight_ -= record.bytes;
  record.lost = 1;
  Append(missing_, slot);
  ++waiting_;
  ++lost_;
  // A packet sent before congestion control reacted to the last loss is part of the same episode.
  if (Before(record.order, episode_)) return;
  episode_ = order_;
  if (++calm_ >= kCalmEpisodes) {
    calm_ = 0;
    if (reorder_level_ != 0) --reorder_level_;
  }
  AlgorithmOf(cc_.kind).on_loss(cc_, now);
}

void SelectiveFlow::OnCnp(TimePoint now) { AlgorithmOf(cc_.kind).on_cnp(cc_, now); }

TimePoint SelectiveFlow::ProbeDeadline() const {
  // With nothing in flight, a probe is needed only to learn when a closed window opens.
  if (flying_ == 0 && !room_closed()) return kNever;
  Duration first = kProbeWithoutRtt;
  if (rtt_.has_sample()) {
    first = std::max(kProbeFloor, rtt_.UnlikelyLater());
  } else if (rtt_.guess().ns != 0) {
    first = std::max(kProbeFloor, rtt_.guess() * 3);
  }
  const Duration wait = first * (int64_t{1} << std::min<int>(probes_, 8));
  return timer_ + std::max(first, std::min(wait, kProbeCeiling));
}

TimePoint SelectiveFlow::deadline() const {
  const TimePoint own = Earlier(ReorderDeadline(), ProbeDeadline());
  return Earlier(AlgorithmOf(cc_.kind).deadline(cc_), own);
}

void SelectiveFlow::BeginProbe(TimePoint now) {
  ++probes_;
  timer_ = now;
  probe_order_ = order_;
  if (++probe_number_ == 0) probe_number_ = 1;
}

FlowVerdict SelectiveFlow::OnDeadline(TimePoint now) {
  const CcAlgorithm& cc = AlgorithmOf(cc_.kind);
  if (cc.deadline(cc_) <= now) cc.on_deadline(cc_, now);
  FindLost(now);
  if (ProbeDeadline() > now) return FlowVerdict::kNothing;
  if (probes_ >= kDeadAfter) return FlowVerdict::kDead;
  BeginProbe(now);
  return probes_ % kSuspectAfter == 0 ? FlowVerdict::kPathSuspect : FlowVerdict::kProbe;
}

}  // namespace rocegw::flow
