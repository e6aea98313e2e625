// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle/talker.h"

#include <algorithm>

#include "tests/sim/oracle/format.h"

namespace rocegw::sim {
namespace {

using verbs::WcStatus;

constexpr uint32_t kInlineMost = 256;  // RingOptions::payload_stride of talkers
constexpr uint32_t kWrongKey = 0x12345678;

uint8_t Code(WcStatus status) { return static_cast<uint8_t>(status); }

}  // namespace

Talker::Talker(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t pair, uint32_t side,
               const TalkerConfig& config, SharedInbox* inbox, Random random)
    : Speaker(host, end, arena, {.base = base, .number = pair * 2 + side}, config, random),
      config_(config),
      order_random_(config.order_seed),
      inbox_(inbox) {}

std::string Talker::Name() const {
  return Format("pair %llu side %llu", Wide(place_.number / 2), Wide(place_.number % 2));
}

// Splits a buffer into one to three pieces.
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
  if (inbox_ != nullptr) return inbox_->Post(plan_.late_receives);
  Speaker::PostReceives();
}

bool Talker::PostReceive() {
  const uint64_t at = InboxAt(static_cast<uint32_t>(receive_ids_ % plan_.slots));
  if (!end_.PostReceive(receive_ids_, Pieces(at, plan_.max_length, host_.key()))) return false;
  receives_.push_back(receive_ids_++);
  return true;
}

// Returns the order flags of a request. The oracle's expectations for WRITEs and READs do not
// depend on when they take effect: slots are reused after completion, and libraries do not change.
// Messages and atomics keep the order of verbs, or ask for more.
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

Talker::Kind Talker::DrawKind() {
  uint64_t dice = random_.Below(100);
  const auto below = [&dice](uint32_t share) {
    const bool yes = dice < share;
    dice -= yes ? 0 : share;
    return yes;
  };
  if (below(config_.writes)) return Kind::kWrite;
  if (below(config_.writes_with_immediate)) return Kind::kWriteImm;
  if (below(config_.reads)) return Kind::kRead;
  if (below(config_.atomics)) return random_.Below(2) == 0 ? Kind::kFetchAdd : Kind::kCompareSwap;
  return Kind::kSend;
}

void Talker::Spoil(Asked& request) {
  request.length = std::max(request.length, 1u);
  switch (config_.ending) {
    case BadRequest::kNone:
      break;
    case BadRequest::kWrongKeyWrite:
    case BadRequest::kWrongKeyRead:
      request.kind = config_.ending == BadRequest::kWrongKeyWrite ? Kind::kWrite : Kind::kRead;
      request.must_fail = Code(WcStatus::kRemoteAccess);
      break;
    case BadRequest::kWrongLocalKey:
      request.kind = Kind::kSend;
      request.must_fail = Code(WcStatus::kLocalProtection);
      break;
    case BadRequest::kTooLong:
      request.kind = Kind::kSend;
      request.must_fail = Code(WcStatus::kRemoteInvalidRequest);
      // Longer than any receive, and shorter than a slot.
      request.length = plan_.max_length + 8;
      break;
  }
}

void Talker::Calculate(Asked& request, rocegw_send_wqe& wqe) {
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
}

bool Talker::PostOne() {
  Asked request;
  request.id = posted_;
  request.slot = static_cast<uint32_t>(posted_ % plan_.slots);
  request.kind = DrawKind();
  request.length = DrawLength(4);
  const bool last = posted_ + 1 == plan_.messages;
  if (last && config_.ending != BadRequest::kNone) Spoil(request);
  const bool bad = request.must_fail != 0;
  // Every few requests are signaled, so that slots become free.
  request.signaled = bad || last || (posted_ + 1) % (plan_.slots / 2) == 0 ||
                     random_.Below(100) >= config_.unsignaled;

  rocegw_send_wqe wqe{};
  wqe.flags = request.signaled ? ROCEGW_WQE_SIGNALED : 0;
  if (random_.Below(8) == 0) wqe.flags |= ROCEGW_WQE_FENCE;
  if (random_.Below(8) == 0) wqe.flags |= ROCEGW_WQE_SOLICITED;
  const bool in_ring = request.length <= kInlineMost && !bad && random_.Below(3) == 0 &&
                       (request.kind == Kind::kSend || request.kind == Kind::kWrite);
  const uint64_t local = Address(request, *peer_, wqe);
  if (request.must_fail == Code(WcStatus::kRemoteAccess)) wqe.u.rdma.rkey = kWrongKey;
  const uint32_t key =
      request.must_fail == Code(WcStatus::kLocalProtection) ? kWrongKey : host_.key();
  const bool atomic = request.kind == Kind::kCompareSwap || request.kind == Kind::kFetchAdd;
  const bool too_long = request.length > plan_.max_length;
  RingEnd::Sges pieces = {{Host::kBase + local, request.length, key}};
  if (!atomic && !too_long) pieces = Pieces(local, request.length, key);
  if (atomic) Calculate(request, wqe);
  Message message{request, static_cast<uint32_t>(random_.Bits()), request.kind == Kind::kWriteImm};
  if (request.kind == Kind::kSend && random_.Below(3) == 0) {
    message.with_immediate = true;
    wqe.opcode = ROCEGW_WR_SEND_WITH_IMM;
  }
  if (!bad) wqe.flags |= OrderOf(request.kind);
  wqe.imm_or_rkey = message.immediate;
  std::vector<uint8_t> payload;
  if (in_ring) {
    wqe.flags |= ROCEGW_WQE_INLINE;
    payload.resize(request.length);
    Fill(request.stream, 0, payload);
    pieces = {{0, request.length, 0}};
  }
  if (!end_.PostSend(wqe, pieces, in_ring ? &payload : nullptr)) return false;
  requests_.push_back(request);
  if (!bad && request.takes_receive()) messages_.push_back(message);
  return true;
}

bool Talker::MayPost() const {
  return requests_.size() < plan_.slots && !broken_ && !peer_->broken_ && !Broken();
}

std::optional<Talker::Receive> Talker::TakeReceive(const rocegw_cqe& cqe) {
  if (inbox_ != nullptr) {
    const std::optional<uint64_t> at = inbox_->Take(cqe);
    if (!at.has_value()) {
      Fail(Format("shared receive %llu completes twice", Wide(cqe.wr_id)));
      return std::nullopt;
    }
    return Receive{*at, inbox_->max_length(), inbox_->payload(cqe.ring_slot), true};
  }
  if (receives_.empty() || cqe.wr_id != receives_.front()) {
    Fail(Format("receive %llu completes out of order", Wide(cqe.wr_id)));
    return std::nullopt;
  }
  receives_.pop_front();
  return Receive{InboxAt(static_cast<uint32_t>(cqe.wr_id % plan_.slots)), plan_.max_length,
                 end_.rq_payload(cqe.ring_slot), false};
}

void Talker::OnReceive(const rocegw_cqe& cqe) {
  const std::optional<Receive> receive = TakeReceive(cqe);
  if (!receive.has_value()) return;
  if (cqe.status != 0) {
    // A too long message of the peer may leave bytes in the receive.
    if (!Broken()) return Fail(Format("receive fails with %u in a good state", cqe.status));
    broken_ = true;
    arena_.Forget(receive->at, plan_.max_length);
    return;
  }
  if (peer_->messages_.empty()) return Fail("received what nobody sent");
  const Message message = peer_->messages_.front();
  peer_->messages_.pop_front();
  if (((cqe.flags & ROCEGW_CQE_WITH_IMM) != 0) != message.with_immediate ||
      (message.with_immediate && cqe.imm_or_rkey != message.immediate)) {
    return Fail("wrong immediate");
  }
  CheckMessage(cqe, *receive, message, 0, received_++);
  if (inbox_ != nullptr) inbox_->Clear(receive->at);
}

void Talker::OnDone(const Asked& request) {
  CheckDone(request, *peer_);
  if (request.kind != Kind::kCompareSwap && request.kind != Kind::kFetchAdd) return;
  CheckAtomic(request, request.original);
  peer_->arena_.ExpectWord(peer_->CounterAt(), request.result);
}

void Talker::OnFlushed(const Asked& request) {
  switch (request.kind) {
    case Kind::kSend:
      break;
    case Kind::kWrite:
    case Kind::kWriteImm:
      peer_->arena_.Forget(peer_->TargetAt(0, request.slot), request.length);
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
    // Unsignaled requests are complete with a later completion, unless an earlier request has
    // failed.
    if (requests_.front().signaled || sends_broken_) break;
    OnDone(requests_.front());
    requests_.pop_front();
  }
  if (requests_.empty() || requests_.front().id != cqe.wr_id) {
    return Fail(Format("request %llu completes out of order or twice, status %u", Wide(cqe.wr_id),
                       cqe.status));
  }
  const Asked request = requests_.front();
  requests_.pop_front();
  if (cqe.status == 0) {
    if (request.must_fail != 0 || sends_broken_) return Fail("success where none can be");
    if (!request.signaled) return Fail("a request without a signal has a completion");
    const bool has_length = request.kind == Kind::kRead;
    if (has_length && cqe.byte_length != request.length) return Fail("READ of another length");
    return OnDone(request);
  }
  OnFlushed(request);
  if (sends_broken_ && !flushed) return Fail(Format("second failure, status %u", cqe.status));
  const bool own = request.must_fail != 0 && !sends_broken_;
  // The other end may have failed, and with it all requests to it.
  const bool others =
      config_.ending != BadRequest::kNone || peer_->config_.ending != BadRequest::kNone;
  // If the response of a READ or atomic was lost and a later request was refused, the oldest
  // unanswered request reports the refusal.
  const bool stands_in = !requests_.empty() && requests_.back().must_fail == cqe.status &&
                         request.kind != Kind::kSend && request.kind != Kind::kWrite &&
                         request.kind != Kind::kWriteImm && !sends_broken_;
  blamed_for_another_ |= stands_in;
  const bool follows = flushed || cqe.status == Code(WcStatus::kRetryExceeded);
  if (!stands_in && !(own && cqe.status == request.must_fail) && !(others && follows))
    return Fail(Format("request %llu: status %u", Wide(request.id), cqe.status));
  broken_ = true;
  sends_broken_ = true;
}

bool Talker::NothingAnnounced() const {
  return std::none_of(requests_.begin(), requests_.end(),
                      [](const Asked& request) { return request.signaled; });
}

// Returns true if the remaining requests are unsignaled and the queue has released them.
bool Talker::NothingLeft() const {
  return end_.status().sq_released == static_cast<uint32_t>(posted_) && NothingAnnounced();
}

bool Talker::done() const {
  if (!failure().empty()) return true;
  if (Broken()) return NothingLeft() && receives_.empty();
  const bool over = broken_ || peer_->broken_ || peer_->Broken();
  if (over) return NothingLeft();
  return posted_ == plan_.messages && requests_.empty() && messages_.empty();
}

void Talker::Finish() {
  if (!broken_ && !peer_->broken_) return;
  // Nothing reported whether these were executed.
  for (const Asked& request : requests_) OnFlushed(request);
  // A part of an abandoned message may have arrived.
  for (const uint64_t id : receives_)
    arena_.Forget(InboxAt(static_cast<uint32_t>(id % plan_.slots)), plan_.max_length);
}

std::string Talker::Describe() const {
  return Name() + Format(
                      ": %llu of %llu posted, %zu not complete, %zu not received, %zu "
                      "receives, state %u",
                      Wide(posted_), Wide(plan_.messages), requests_.size(), messages_.size(),
                      receives_.size(), end_.status().state);
}

}  // namespace rocegw::sim
