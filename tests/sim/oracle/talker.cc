// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle/talker.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace rocegw::sim {
namespace {

using verbs::WcStatus;

constexpr uint32_t kInlineMost = 256;  // RingOptions::payload_stride of those who talk
constexpr uint32_t kWrongKey = 0x12345678;

uint8_t Code(WcStatus status) { return static_cast<uint8_t>(status); }

std::string Text(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

unsigned long long Wide(uint64_t number) { return number; }

}  // namespace

uint64_t Talker::Room(const TalkerConfig& config) {
  return (4 * uint64_t{config.slots} + 2) * ((config.max_length + 7) / 8 * 8 + kGuard);
}

Talker::Talker(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t pair, uint32_t side,
               const TalkerConfig& config, SharedInbox* inbox, Random random)
    : host_(host),
      end_(end),
      arena_(arena),
      base_(base),
      pair_(pair),
      side_(side),
      config_(config),
      random_(random),
      order_random_(config.order_seed),
      inbox_(inbox) {
  arena_.Write(LibraryAt(), config_.max_length, library_stream(), 0);
  arena_.WriteWord(CounterAt(), 0);
  host_.Add(*this);
}

void Talker::Fail(const std::string& what) {
  if (failure_.empty()) {
    failure_ = Text("pair %u side %u at %.3f us: ", pair_, side_,
                    static_cast<double>(now_.ns - EventQueue::kStart.ns) / 1000) +
               what;
  }
}

// One to three pieces in a row.
RingEnd::Sges Talker::Pieces(uint64_t at, uint32_t length, uint32_t key) {
  RingEnd::Sges pieces;
  uint32_t done = 0;
  for (uint64_t more = random_.Below(3); more > 0 && done < length; --more) {
    const auto part = static_cast<uint32_t>(random_.Below(length - done + 1));
    pieces.push_back({Host::kBase + at + done, part, key});
    done += part;
  }
  pieces.push_back({Host::kBase + at + done, length - done, key});
  return pieces;
}

void Talker::PostReceives() {
  if (inbox_ != nullptr) return inbox_->Post(config_.late_receives);
  bool posted = false;
  while (receives_.size() < config_.slots && random_.Below(100) >= config_.late_receives) {
    const uint64_t at = InboxAt(static_cast<uint32_t>(receive_ids_ % config_.slots));
    if (!end_.PostReceive(receive_ids_, Pieces(at, config_.max_length, host_.key()))) break;
    receives_.push_back(receive_ids_++);
    posted = true;
  }
  if (posted && (end_.status().rq_starved != 0 || Broken())) host_.Ring(end_);
}

void Talker::FillSource(Request& request) {
  request.stream = StreamOf(pair_, side_, request.kind == Kind::kSend ? 0 : 1, request.id);
  arena_.Write(SourceAt(request.slot), request.length, request.stream, 0);
}

// Nothing that the oracle promises depends on when a WRITE or a READ takes effect: slots are used
// again when requests are complete, and libraries do not change. Messages and atomics keep the
// order of verbs, or ask for more.
uint16_t Talker::OrderOf(Kind kind) {
  if (config_.less_order == 0) return 0;
  const bool less = order_random_.Below(100) < config_.less_order;
  const bool first = order_random_.Below(2) == 0;
  if (kind == Kind::kWrite || kind == Kind::kRead) {
    return less ? (first ? ROCEGW_WQE_ORDER_NONE : ROCEGW_WQE_ORDER_RELAXED) : 0;
  }
  if (order_random_.Below(8) != 0) return 0;
  return first ? ROCEGW_WQE_FENCE_TARGET : ROCEGW_WQE_FENCE_ALL;
}

bool Talker::PostOne() {
  Request request;
  request.id = posted_;
  request.slot = static_cast<uint32_t>(posted_ % config_.slots);
  const bool last = posted_ + 1 == config_.messages;
  const BadRequest bad = last ? config_.ending : BadRequest::kNone;
  uint64_t dice = random_.Below(100);
  const auto below = [&dice](uint32_t share) {
    const bool yes = dice < share;
    dice -= yes ? 0 : share;
    return yes;
  };
  request.kind = below(config_.writes)                  ? Kind::kWrite
                 : below(config_.writes_with_immediate) ? Kind::kWriteImm
                 : below(config_.reads)                 ? Kind::kRead
                 : below(config_.atomics)
                     ? (random_.Below(2) == 0 ? Kind::kFetchAdd : Kind::kCompareSwap)
                     : Kind::kSend;
  // Also nothing at all, and often something short.
  request.length = static_cast<uint32_t>(random_.Below(
      (random_.Below(4) == 0 ? std::min(config_.max_length, 300u) : config_.max_length) + 1));
  uint32_t local_key = host_.key();
  uint32_t remote_key = peer_->host_.key();
  switch (bad) {
    case BadRequest::kNone:
      break;
    case BadRequest::kWrongKeyWrite:
    case BadRequest::kWrongKeyRead:
      request.kind = bad == BadRequest::kWrongKeyWrite ? Kind::kWrite : Kind::kRead;
      request.must_fail = Code(WcStatus::kRemoteAccess);
      remote_key = kWrongKey;
      break;
    case BadRequest::kWrongLocalKey:
      request.kind = Kind::kSend;
      request.must_fail = Code(WcStatus::kLocalProtection);
      local_key = kWrongKey;
      break;
    case BadRequest::kTooLong:
      request.kind = Kind::kSend;
      request.must_fail = Code(WcStatus::kRemoteInvalidRequest);
      break;
  }
  if (bad != BadRequest::kNone) request.length = std::max(request.length, 1u);
  // The guard behind the source is read as well: longer than any receive.
  if (bad == BadRequest::kTooLong) request.length = config_.max_length + 8;
  // Every few are signaled, so that slots come free.
  request.signaled = bad != BadRequest::kNone || last || (posted_ + 1) % (config_.slots / 2) == 0 ||
                     random_.Below(100) >= config_.unsignaled;

  rocegw_send_wqe wqe{};
  wqe.wr_id = request.id;
  wqe.flags = request.signaled ? ROCEGW_WQE_SIGNALED : 0;
  if (random_.Below(8) == 0) wqe.flags |= ROCEGW_WQE_FENCE;
  if (random_.Below(8) == 0) wqe.flags |= ROCEGW_WQE_SOLICITED;
  wqe.u.rdma.rkey = remote_key;
  wqe.u.rdma.remote_address = Host::kBase + peer_->TargetAt(request.slot);
  RingEnd::Sges pieces;
  std::vector<uint8_t> payload;
  const bool in_ring = request.length <= kInlineMost && bad == BadRequest::kNone &&
                       random_.Below(3) == 0 &&
                       (request.kind == Kind::kSend || request.kind == Kind::kWrite);
  switch (request.kind) {
    case Kind::kSend:
    case Kind::kWrite:
    case Kind::kWriteImm:
      if (bad == BadRequest::kTooLong) {
        pieces = {{Host::kBase + SourceAt(request.slot), request.length, local_key}};
      } else {
        FillSource(request);
        pieces = Pieces(SourceAt(request.slot), request.length, local_key);
      }
      break;
    case Kind::kRead:
      request.from = random_.Below(config_.max_length - request.length + 1);
      wqe.u.rdma.remote_address = Host::kBase + peer_->LibraryAt() + request.from;
      pieces = Pieces(SinkAt(request.slot), request.length, local_key);
      break;
    case Kind::kCompareSwap:
    case Kind::kFetchAdd:
      request.length = 8;
      wqe.u.rdma.remote_address = Host::kBase + peer_->CounterAt();
      pieces = {{Host::kBase + SinkAt(request.slot), 8, local_key}};
      request.original = counter_;
      wqe.u.rdma.compare_add = random_.Bits();
      if (request.kind == Kind::kFetchAdd) {
        counter_ += wqe.u.rdma.compare_add;
      } else {
        wqe.u.rdma.swap = random_.Bits();
        if (random_.Below(2) == 0) wqe.u.rdma.compare_add = counter_;
        if (wqe.u.rdma.compare_add == counter_) counter_ = wqe.u.rdma.swap;
      }
      request.result = counter_;
      break;
  }
  Message message{request.stream,
                  request.length,
                  static_cast<uint32_t>(random_.Bits()),
                  request.kind == Kind::kWriteImm,
                  request.kind == Kind::kWriteImm,
                  request.slot};
  switch (request.kind) {
    case Kind::kSend:
      message.with_immediate = random_.Below(3) == 0;
      wqe.opcode = message.with_immediate ? ROCEGW_WR_SEND_WITH_IMM : ROCEGW_WR_SEND;
      break;
    case Kind::kWrite:
      wqe.opcode = ROCEGW_WR_RDMA_WRITE;
      break;
    case Kind::kWriteImm:
      wqe.opcode = ROCEGW_WR_RDMA_WRITE_WITH_IMM;
      break;
    case Kind::kRead:
      wqe.opcode = ROCEGW_WR_RDMA_READ;
      break;
    case Kind::kCompareSwap:
      wqe.opcode = ROCEGW_WR_ATOMIC_CMP_AND_SWP;
      break;
    case Kind::kFetchAdd:
      wqe.opcode = ROCEGW_WR_ATOMIC_FETCH_AND_ADD;
      break;
  }
  if (bad == BadRequest::kNone) wqe.flags |= OrderOf(request.kind);
  wqe.imm_or_rkey = message.immediate;
  if (in_ring) {
    wqe.flags |= ROCEGW_WQE_INLINE;
    payload.resize(request.length);
    Fill(request.stream, 0, payload);
    pieces = {{0, request.length, 0}};
  }
  if (!end_.PostSend(wqe, pieces, in_ring ? &payload : nullptr)) return false;
  requests_.push_back(request);
  if (bad == BadRequest::kNone &&
      (request.kind == Kind::kSend || request.kind == Kind::kWriteImm)) {
    messages_.push_back(message);
  }
  ++posted_;
  return true;
}

void Talker::PostRequests() {
  bool rang = false;
  // Whoever waits for nothing that is announced must not pause: no event need follow.
  while (posted_ < config_.messages && requests_.size() < config_.slots && !broken_ &&
         !peer_->broken_ && !Broken() && (NothingAnnounced() || random_.Below(4) != 0)) {
    if (!PostOne()) break;
    rang = true;
  }
  if (rang) host_.Ring(end_);
}

void Talker::Check(Arena& arena, uint64_t at, uint64_t length, const char* what, uint64_t id) {
  const uint64_t wrong = arena.FirstDifference(at, length);
  if (wrong != at + length) {
    Fail(Text("%s %llu: byte %llu is wrong", what, static_cast<unsigned long long>(id),
              static_cast<unsigned long long>(wrong - at)));
  }
}

std::optional<uint64_t> Talker::TakeReceive(const rocegw_cqe& cqe) {
  if (inbox_ != nullptr) {
    const std::optional<uint64_t> at = inbox_->Take(cqe);
    if (!at.has_value()) Fail(Text("shared receive %llu completes twice", Wide(cqe.wr_id)));
    return at;
  }
  if (receives_.empty() || cqe.wr_id != receives_.front()) {
    Fail(Text("receive %llu completes out of order", Wide(cqe.wr_id)));
    return std::nullopt;
  }
  receives_.pop_front();
  return InboxAt(static_cast<uint32_t>(cqe.wr_id % config_.slots));
}

void Talker::OnReceive(const rocegw_cqe& cqe) {
  const std::optional<uint64_t> at = TakeReceive(cqe);
  if (!at.has_value()) return;
  if (cqe.status != 0) {
    // What the peer's too long message did is the receive's own affair.
    if (!Broken()) return Fail(Text("receive fails with %u in a good state", cqe.status));
    broken_ = true;
    arena_.Forget(*at, config_.max_length);
    return;
  }
  if (peer_->messages_.empty()) return Fail("received what nobody sent");
  const Message message = peer_->messages_.front();
  peer_->messages_.pop_front();
  if (cqe.byte_length != message.length) {
    return Fail(Text("received %u bytes instead of %u", cqe.byte_length, message.length));
  }
  if (((cqe.flags & ROCEGW_CQE_WITH_IMM) != 0) != message.with_immediate ||
      (message.with_immediate && cqe.imm_or_rkey != message.immediate)) {
    return Fail("wrong immediate");
  }
  OnMessage(cqe, *at, message);
  ++received_;
  bytes_ += message.length;
}

void Talker::OnMessage(const rocegw_cqe& cqe, uint64_t at, const Message& message) {
  if (message.written) {
    arena_.Expect(TargetAt(message.slot), message.length, message.stream, 0);
    Check(arena_, TargetAt(message.slot), Guarded(), "WRITE with immediate", received_);
    if (inbox_ != nullptr) inbox_->Clear(at);
    return;
  }
  if ((cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING) != 0) {
    const uint8_t* const payload =
        inbox_ != nullptr ? inbox_->payload(cqe.ring_slot) : end_.rq_payload(cqe.ring_slot);
    std::memcpy(arena_.Bytes(at, message.length).data(), payload, message.length);
  }
  arena_.Expect(at, message.length, message.stream, 0);
  if (inbox_ == nullptr) return Check(arena_, at, Guarded(), "SEND", received_);
  // Behind it may lie what was refused and came again.
  Check(arena_, at, message.length, "SEND to a shared queue", received_);
  Check(arena_, at + inbox_->max_length(), inbox_->slot_length() - inbox_->max_length(),
        "bytes behind SEND", received_);
  inbox_->Clear(at);
}

void Talker::OnDone(const Request& request) {
  Talker& peer = *peer_;
  switch (request.kind) {
    case Kind::kSend:
      break;
    case Kind::kWrite:
    case Kind::kWriteImm: {
      const uint64_t at = peer.TargetAt(request.slot);
      peer.arena_.Expect(at, request.length, request.stream, 0);
      Check(peer.arena_, at, Guarded(), "WRITE", request.id);
      // A copy of the WRITE that comes late must do nothing.
      peer.arena_.Write(at, request.length, ~request.stream, 0);
      bytes_ += request.length;
      break;
    }
    case Kind::kRead:
      arena_.Expect(SinkAt(request.slot), request.length, peer.library_stream(), request.from);
      Check(arena_, SinkAt(request.slot), Guarded(), "READ", request.id);
      bytes_ += request.length;
      break;
    case Kind::kCompareSwap:
    case Kind::kFetchAdd:
      arena_.ExpectWord(SinkAt(request.slot), request.original);
      Check(arena_, SinkAt(request.slot), Guarded(), "atomic", request.id);
      peer.arena_.ExpectWord(peer.CounterAt(), request.result);
      break;
  }
}

void Talker::OnFlushed(const Request& request) {
  switch (request.kind) {
    case Kind::kSend:
      break;
    case Kind::kWrite:
    case Kind::kWriteImm:
      peer_->arena_.Forget(peer_->TargetAt(request.slot), request.length);
      break;
    case Kind::kRead:
      arena_.Forget(SinkAt(request.slot), request.length);
      break;
    case Kind::kCompareSwap:
    case Kind::kFetchAdd:
      arena_.Forget(SinkAt(request.slot), 8);
      peer_->arena_.Forget(peer_->CounterAt(), 8);
      break;
  }
}

void Talker::OnSent(const rocegw_cqe& cqe) {
  const bool flushed = cqe.status == Code(WcStatus::kFlush);
  while (!requests_.empty() && requests_.front().id != cqe.wr_id) {
    // Those without a completion of their own are complete with a later one; but none is when one
    // before has failed.
    if (requests_.front().signaled || sends_broken_) break;
    OnDone(requests_.front());
    requests_.pop_front();
  }
  if (requests_.empty() || requests_.front().id != cqe.wr_id) {
    return Fail(Text("request %llu completes out of order or twice, status %u",
                     static_cast<unsigned long long>(cqe.wr_id), cqe.status));
  }
  const Request request = requests_.front();
  requests_.pop_front();
  if (cqe.status == 0) {
    if (!request.signaled) return Fail("a request without a signal has a completion");
    if (request.must_fail != 0 || sends_broken_) return Fail("success where none can be");
    const bool has_length = request.kind == Kind::kRead;
    if (has_length && cqe.byte_length != request.length) return Fail("READ of another length");
    return OnDone(request);
  }
  OnFlushed(request);
  if (sends_broken_ && !flushed) return Fail(Text("second failure, status %u", cqe.status));
  const bool own = request.must_fail != 0 && !sends_broken_;
  // The other end may have failed, and with it everything towards it.
  const bool others =
      config_.ending != BadRequest::kNone || peer_->config_.ending != BadRequest::kNone;
  // The answer of a READ or atomic was lost, and what came later was refused: the oldest without an
  // answer tells why.
  const bool stands_in = !requests_.empty() && requests_.back().must_fail == cqe.status &&
                         request.kind != Kind::kSend && request.kind != Kind::kWrite &&
                         request.kind != Kind::kWriteImm && !sends_broken_;
  blamed_for_another_ |= stands_in;
  const bool follows = flushed || cqe.status == Code(WcStatus::kRetryExceeded);
  if (!stands_in && !(own && cqe.status == request.must_fail) && !(others && follows)) {
    return Fail(
        Text("request %llu: status %u", static_cast<unsigned long long>(request.id), cqe.status));
  }
  broken_ = true;
}

void Talker::Look(TimePoint now) {
  if (!failure_.empty()) return;
  now_ = now;
  for (const rocegw_cqe& cqe : end_.Poll()) {
    (cqe.flags & ROCEGW_CQE_RECEIVE) != 0 ? OnReceive(cqe) : OnSent(cqe);
    if (!failure_.empty()) return;
  }
  if (broken_ || Broken()) return;
  PostReceives();
  PostRequests();
}

bool Talker::NothingAnnounced() const {
  return std::none_of(requests_.begin(), requests_.end(),
                      [](const Request& request) { return request.signaled; });
}

// Those that are left have no completion of their own, and the queue has let go of them.
bool Talker::NothingLeft() const {
  return end_.status().sq_released == static_cast<uint32_t>(posted_) && NothingAnnounced();
}

bool Talker::done() const {
  if (!failure_.empty()) return true;
  if (Broken()) return NothingLeft() && receives_.empty();
  const bool over = broken_ || peer_->broken_ || peer_->Broken();
  if (over) return NothingLeft();
  return posted_ == config_.messages && requests_.empty() && messages_.empty();
}

void Talker::SpoilLibrary() {
  for (uint8_t& byte : arena_.Bytes(LibraryAt(), config_.max_length)) byte ^= 0x10;
}

void Talker::Finish() {
  if (!broken_ && !peer_->broken_) return;
  // Whether they were done, nobody said.
  for (const Request& request : requests_) OnFlushed(request);
  // Of a message that was given up, a part may have come.
  for (const uint64_t id : receives_) {
    arena_.Forget(InboxAt(static_cast<uint32_t>(id % config_.slots)), config_.max_length);
  }
}

std::string Talker::Describe() const {
  return Text(
      "pair %u side %u: %llu of %llu posted, %zu not complete, %zu not received, %zu "
      "receives, state %u",
      pair_, side_, static_cast<unsigned long long>(posted_),
      static_cast<unsigned long long>(config_.messages), requests_.size(), messages_.size(),
      receives_.size(), end_.status().state);
}

}  // namespace rocegw::sim
