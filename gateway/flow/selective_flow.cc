// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/selective_flow.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "gateway/base/invariant.h"

namespace rocegw::flow {
namespace {

// In transmissions: longer than anything stays in flight.
constexpr int32_t kLongAgo = 1 << 30;

// Serial comparison of transmission orders.
bool Before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

uint32_t Clamp32(int64_t ns) {
  return static_cast<uint32_t>(std::clamp<int64_t>(ns, 1, std::numeric_limits<uint32_t>::max()));
}

uint64_t LowBits(uint32_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// `count` (at most 64) bits from bit `from` on; those beyond the words are 0.
uint64_t BitsAt(std::span<const uint32_t> words, uint32_t from, uint32_t count) {
  const size_t word = from / 32;
  const uint32_t shift = from % 32;
  const auto at = [&](size_t i) { return i < words.size() ? uint64_t{words[i]} : 0; };
  uint64_t bits = (at(word) | at(word + 1) << 32) >> shift;
  if (shift != 0) bits |= at(word + 2) << (64 - shift);
  return bits & LowBits(count);
}

}  // namespace

// What one acknowledgement has brought.
struct SelectiveFlow::Newest {
  TimePoint now;
  Duration held;
  uint64_t acked_bytes = 0;
  bool found = false;  // a transmission that surely was the one that arrived
  bool late = false;   // one that was called lost
  bool resent = false;
  uint32_t order = 0;
  TimePoint sent;
};

// What an idle flow holds.
static_assert(sizeof(SelectiveFlow) <= 104);

void SelectiveFlow::Start(const SelectiveConfig& config, Psn first, TimePoint now) {
  Stop();
  una_ = next_ = first;
  limit_ = first + std::min(config.room_packets, kMaxFlowPackets);
  max_packets_ =
      static_cast<uint16_t>(std::clamp<uint32_t>(config.max_packets, 1, kMaxFlowPackets));
  marked_ = 0;
  reorder_level_ = duplicates_ = 0;
  lost_ = resent_ = spurious_ = 0;
  rtt_ = RttEstimator();
  handshake_rtt_ = config.rtt.ns > 0 ? Clamp32(config.rtt.ns) : 0;
  config_ = config.cc;
  resting_window_ = 0;
  // Somebody must ask when it opens.
  if (room_closed()) Wake(now);
}

void SelectiveFlow::Stop() {
  if (run_ != nullptr && run_->directory != nullptr) {
    for (RecordChunk* chunk : run_->directory->chunks) {
      if (chunk != nullptr) pool_->GiveBack(chunk);
    }
    pool_->GiveBack(run_->directory);
  }
  una_ = next_;
  run_.reset();
}

CcState SelectiveFlow::MakeCc(TimePoint now) const {
  CcState cc;
  cc.kind = config_.kind;
  AlgorithmOf(cc.kind).init(cc, config_, now);
  return cc;
}

void SelectiveFlow::Wake(TimePoint now) {
  if (run_ != nullptr) return;
  run_ = std::make_unique<Running>();
  run_->timer = now;
  run_->cc = MakeCc(now);
  if (resting_window_ != 0) {
    const CcOperatingPoint point{resting_window_, rtt_.smoothed()};
    AlgorithmOf(config_.kind).take_over(run_->cc, point, now);
  }
}

uint64_t SelectiveFlow::cc_window() const {
  if (run_ == nullptr && resting_window_ != 0) return resting_window_;
  return AlgorithmOf(config_.kind)
      .window(run_ == nullptr ? MakeCc(TimePoint()) : run_->cc, rtt_.smoothed());
}

void SelectiveFlow::SwitchCc(const CcConfig& cc, TimePoint now) {
  const CcOperatingPoint point{cc_window(), rtt_.smoothed()};
  config_ = cc;
  if (run_ == nullptr) {
    resting_window_ = Clamp32(static_cast<int64_t>(point.window));
    return;
  }
  run_->cc = MakeCc(now);
  AlgorithmOf(config_.kind).take_over(run_->cc, point, now);
}

bool SelectiveFlow::MaySend(uint64_t bytes, TimePoint now) const {
  if (packets_lost() == 0) {
    const auto span = static_cast<uint32_t>(PsnDistance(next_, una_));
    if (span >= max_packets_ || !PsnBefore(next_, limit_)) return false;
  }
  // What rests has sent nothing that pacing would have to make up for.
  if (run_ == nullptr) return true;
  const SendGate gate = AlgorithmOf(config_.kind).gate(run_->cc, run_->in_flight);
  if (gate.earliest > now) return false;
  return run_->flying == 0 || bytes <= gate.bytes;
}

TimePoint SelectiveFlow::earliest() const {
  if (run_ == nullptr) return kNever;
  const SendGate gate = AlgorithmOf(config_.kind).gate(run_->cc, run_->in_flight);
  return gate.earliest.ns > 0 ? gate.earliest : kNever;
}

const SentRecord* SelectiveFlow::Find(Psn psn) const {
  if (run_ == nullptr || run_->directory == nullptr) return nullptr;
  const uint32_t slot = SlotOf(psn);
  const RecordChunk* chunk = run_->directory->chunks[slot / kRecordsPerChunk];
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
  record.order = run_->order++;
  record.sent = now;
  Append(run_->flight, slot);
  if (run_->flying++ == 0) run_->timer = now;
  run_->in_flight += record.bytes;
  run_->unasked =
      static_cast<uint16_t>(std::min<uint32_t>(run_->unasked + (record.bytes + 63) / 64, 0xFFFF));
  AlgorithmOf(config_.kind).on_sent(run_->cc, record.bytes, now);
}

Psn SelectiveFlow::OnSent(const FrameRef& frame, uint32_t bytes, TimePoint now) {
  const Psn psn = next_;
  const auto span = static_cast<uint32_t>(PsnDistance(next_, una_));
  if (!ROCEGW_INVARIANT(span < kMaxFlowPackets, "selective-flow-window")) return psn;
  Wake(now);
  if (run_->directory == nullptr) run_->directory = pool_->TakePage();
  const uint32_t slot = SlotOf(psn);
  RecordChunk*& chunk = run_->directory->chunks[slot / kRecordsPerChunk];
  if (chunk == nullptr) chunk = pool_->TakeChunk();
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
  if (run_ == nullptr || run_->unasked == 0) return false;
  if (uint64_t{run_->unasked} * 64 * 4 < cc_window()) return false;
  run_->unasked = 0;
  return true;
}

bool SelectiveFlow::NextLost(Psn& psn, FrameRef& frame, uint32_t& bytes) const {
  if (packets_lost() == 0) return false;
  const SentRecord& record = At(run_->missing.first);
  psn = PsnOf(run_->missing.first);
  frame = record.frame;
  bytes = record.bytes;
  return true;
}

void SelectiveFlow::OnResent(Psn psn, TimePoint now) {
  const bool lost = Find(psn) != nullptr && Find(psn)->lost != 0;
  if (!ROCEGW_INVARIANT(lost, "selective-flow-resent")) return;
  const uint32_t slot = SlotOf(psn);
  SentRecord& record = At(slot);
  Remove(run_->missing, record);
  --run_->waiting;
  record.lost = 0;
  record.resent = 1;
  ++resent_;
  EnterFlight(record, slot, now);
}

void SelectiveFlow::AckRecord(const SentRecord& record, Newest& newest) {
  newest.acked_bytes += record.bytes;
  if (record.lost != 0) {
    Remove(run_->missing, record);
    --run_->waiting;
    newest.late = true;
    ++spurious_;
    return;
  }
  Remove(run_->flight, record);
  --run_->flying;
  run_->in_flight -= record.bytes;
  // Sooner than an answer can be, it may be the transmission before that has arrived. Then what was
  // sent between the two is not overdue.
  if (record.resent != 0 && newest.now - record.sent - newest.held < rtt_.minimum() * 3 / 4) return;
  if (newest.found && Before(record.order, newest.order)) return;
  newest.found = true;
  newest.order = record.order;
  newest.sent = record.sent;
  newest.resent = record.resent != 0;
}

// Of the PSNs from `first` on, which lie in one chunk, those with their bit set have arrived.
void SelectiveFlow::AckPiece(Psn first, uint32_t count, uint64_t bits, AckedSink& sink,
                             Newest& newest) {
  const uint32_t slot = SlotOf(first);
  RecordChunk*& chunk = run_->directory->chunks[slot / kRecordsPerChunk];
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
  pool_->GiveBack(chunk);
  chunk = nullptr;
}

void SelectiveFlow::AckBitmap(const AckInfo& ack, AckedSink& sink, Newest& newest) {
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
      AckPiece(first + at, count, bits, sink, newest);
    }
    at += count;
  }
}

bool SelectiveFlow::OnAck(const AckInfo& ack, TimePoint now, AckedSink& sink) {
  if (PsnBefore(ack.next, una_) || PsnAfter(ack.next, next_)) return false;
  Wake(now);
  Newest newest{.now = now, .held = std::max(ack.held, Duration{})};
  const uint64_t in_flight_before = run_->in_flight;
  if (run_->directory != nullptr) {
    for (Psn psn = una_; psn != ack.next;) {
      const uint32_t left = kRecordsPerChunk - SlotOf(psn) % kRecordsPerChunk;
      const uint32_t count = std::min(left, static_cast<uint32_t>(PsnDistance(ack.next, psn)));
      AckPiece(psn, count, ~uint64_t{0}, sink, newest);
      psn = psn + count;
    }
    AckBitmap(ack, sink, newest);
  }
  una_ = ack.next;
  limit_ = ack.next + std::min(ack.room_packets, kMaxFlowPackets);
  run_->timer = now;
  LearnFrom(ack, newest, in_flight_before, sink, now);
  if (ack.probe != 0 && ack.probe == probe_number_) {
    while (run_->flying != 0 && Before(At(run_->flight.first).order, run_->probe_order))
      DeclareOldestLost(now);
  }
  run_->probes = 0;
  FindLost(now);
  if (idle() && run_->directory != nullptr) {
    pool_->GiveBack(run_->directory);
    run_->directory = nullptr;
  }
  return true;
}

void SelectiveFlow::LearnFrom(const AckInfo& ack, const Newest& newest, uint64_t in_flight_before,
                              AckedSink& sink, TimePoint now) {
  const auto again = static_cast<uint8_t>(ack.duplicates_running - duplicates_);
  // Half of the range ahead; what is behind is of an older acknowledgement.
  if (again != 0 && again < 128) {
    duplicates_ = ack.duplicates_running;
    spurious_ += again;
  }
  if (newest.late || (again != 0 && again < 128)) OnLate();
  CcFeedback feedback{
      .acked_bytes = newest.acked_bytes, .in_flight_before = in_flight_before, .hint = ack.hint};
  if (newest.found) {
    const Duration rtt{Clamp32((now - newest.sent - newest.held).ns)};
    if (Before(run_->newest, newest.order) || run_->newest_rtt == 0) {
      run_->newest = newest.order;
      run_->newest_rtt = static_cast<uint32_t>(rtt.ns);
    }
    // Orders compare over 2^31 transmissions; what is remembered follows.
    if (static_cast<int32_t>(run_->newest - run_->episode) > kLongAgo)
      run_->episode = run_->newest - kLongAgo / 2;
    if (static_cast<int32_t>(run_->newest - run_->probe_order) > kLongAgo) {
      run_->probe_order = run_->newest - kLongAgo / 2;
    }
    // What was sent twice may have arrived the first time (Karn).
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
  AlgorithmOf(config_.kind).on_feedback(run_->cc, feedback, now);
  sink.OnFeedback(feedback);
}

void SelectiveFlow::OnLate() {
  run_->calm = 0;
  reorder_level_ = std::min<uint8_t>(reorder_level_ + 1, kMaxReorderLevel);
}

Duration SelectiveFlow::ReorderTime() const {
  const Duration time = rtt_.minimum() / 4 * (1 + reorder_level_);
  return std::min(time, std::max(rtt_.smoothed(), rtt_.minimum() / 4));
}

TimePoint SelectiveFlow::ReorderDeadline() const {
  if (run_->flying == 0 || run_->newest_rtt == 0) return kNever;
  const SentRecord& oldest = At(run_->flight.first);
  if (!Before(oldest.order, run_->newest)) return kNever;
  return oldest.sent + Nanoseconds(run_->newest_rtt) + ReorderTime();
}

void SelectiveFlow::FindLost(TimePoint now) {
  const uint32_t threshold = kReorderPackets << reorder_level_;
  while (run_->flying != 0 && run_->newest_rtt != 0) {
    const SentRecord& oldest = At(run_->flight.first);
    if (!Before(oldest.order, run_->newest)) return;
    if (run_->newest - oldest.order < threshold && ReorderDeadline() > now) return;
    DeclareOldestLost(now);
  }
}

void SelectiveFlow::DeclareOldestLost(TimePoint now) {
  const uint16_t slot = run_->flight.first;
  SentRecord& record = At(slot);
  Remove(run_->flight, record);
  --run_->flying;
  run_->in_flight -= record.bytes;
  record.lost = 1;
  Append(run_->missing, slot);
  ++run_->waiting;
  ++lost_;
  // What left before congestion control heard of the last loss says nothing new.
  if (Before(record.order, run_->episode)) return;
  run_->episode = run_->order;
  if (++run_->calm >= kCalmEpisodes) {
    run_->calm = 0;
    if (reorder_level_ != 0) --reorder_level_;
  }
  AlgorithmOf(config_.kind).on_loss(run_->cc, now);
}

void SelectiveFlow::OnCnp(TimePoint now) {
  // Of what a flow at rest sent long ago it says nothing any more.
  if (run_ != nullptr) AlgorithmOf(config_.kind).on_cnp(run_->cc, now);
}

TimePoint SelectiveFlow::ProbeDeadline() const {
  // With nothing in flight only a closed window is worth asking about.
  if (run_->flying == 0 && !room_closed()) return kNever;
  Duration first = kProbeWithoutRtt;
  if (rtt_.has_sample()) {
    first = std::max(kProbeFloor, rtt_.UnlikelyLater());
  } else if (handshake_rtt_ != 0) {
    first = std::max(kProbeFloor, Nanoseconds(handshake_rtt_) * 3);
  }
  const Duration wait = first * (int64_t{1} << std::min<int>(run_->probes, 8));
  return run_->timer + std::max(first, std::min(wait, kProbeCeiling));
}

// With a closed window it must go on asking.
TimePoint SelectiveFlow::RestDeadline() const {
  return idle() && !room_closed() ? run_->timer + kRestAfter : kNever;
}

TimePoint SelectiveFlow::deadline() const {
  if (run_ == nullptr) return kNever;
  const TimePoint own = Earlier(Earlier(ReorderDeadline(), ProbeDeadline()), RestDeadline());
  return Earlier(AlgorithmOf(config_.kind).deadline(run_->cc), own);
}

FlowVerdict SelectiveFlow::OnDeadline(TimePoint now) {
  if (run_ == nullptr) return FlowVerdict::kNothing;
  const CcAlgorithm& cc = AlgorithmOf(config_.kind);
  if (cc.deadline(run_->cc) <= now) cc.on_deadline(run_->cc, now);
  if (RestDeadline() <= now) {
    resting_window_ = Clamp32(static_cast<int64_t>(cc_window()));
    run_.reset();
    return FlowVerdict::kNothing;
  }
  FindLost(now);
  if (ProbeDeadline() > now) return FlowVerdict::kNothing;
  if (run_->probes >= kDeadAfter) return FlowVerdict::kDead;
  ++run_->probes;
  run_->timer = now;
  run_->probe_order = run_->order;
  if (++probe_number_ == 0) probe_number_ = 1;
  return run_->probes % kSuspectAfter == 0 ? FlowVerdict::kPathSuspect : FlowVerdict::kProbe;
}

}  // namespace rocegw::flow
