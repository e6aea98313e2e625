// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle/correspondent.h"

#include <algorithm>
#include <cstring>

namespace rocegw::sim {
namespace {

std::string Number(uint64_t number) { return std::to_string(number); }

}  // namespace

uint64_t Correspondent::Room(const CorrespondentConfig& config, size_t all) {
  const uint64_t guarded = (config.max_length + 7) / 8 * 8 + kGuard;
  return ((3 + all) * config.slots + 2) * guarded;
}

Correspondent::Correspondent(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t number,
                             size_t all, const CorrespondentConfig& config, Random random)
    : host_(host),
      end_(end),
      arena_(arena),
      base_(base),
      number_(number),
      all_(all),
      config_(config),
      random_(random) {
  arena_.Write(LibraryAt(), config_.max_length, library_stream(), 0);
  arena_.WriteWord(CounterAt(), 0);
  for (uint32_t slot = config_.slots; slot != 0; --slot) {
    free_slots_.push_back(slot - 1);
    free_inboxes_.push_back(slot - 1);
  }
  host_.Add(*this);
}

void Correspondent::Fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = "endpoint " + Number(number_) + " at " +
             Number(static_cast<uint64_t>((now_ - EventQueue::kStart).ns)) + " ns: " + what;
}

void Correspondent::Check(Arena& arena, uint64_t at, uint64_t length, const char* what,
                          uint64_t id) {
  const uint64_t wrong = arena.FirstDifference(at, length);
  if (wrong != at + length)
    Fail(std::string(what) + " " + Number(id) + ": byte " + Number(wrong - at) + " is wrong");
}

void Correspondent::PostReceives() {
  bool posted = false;
  while (!free_inboxes_.empty() && random_.Below(100) >= config_.late_receives) {
    const uint64_t slot = free_inboxes_.back();
    if (!end_.PostReceive(slot, {{Host::kBase + InboxAt(slot), config_.max_length, host_.key()}}))
      break;
    free_inboxes_.pop_back();
    posted = true;
  }
  if (posted && end_.status().rq_starved != 0) host_.Ring(end_);
}

bool Correspondent::PostOne() {
  const Other& other = others_[random_.Below(others_.size())];
  Request request;
  request.to = other.who;
  request.slot = free_slots_.back();
  constexpr Kind kKinds[] = {Kind::kSend,  Kind::kSend,     Kind::kSend, Kind::kWrite,
                             Kind::kWrite, Kind::kWriteImm, Kind::kRead, Kind::kFetchAdd};
  request.kind = kKinds[random_.Below(std::size(kKinds))];
  request.length = static_cast<uint32_t>(random_.Below(
      (random_.Below(3) == 0 ? std::min(config_.max_length, 300u) : config_.max_length) + 1));
  request.stream = StreamOf(number_, 3, 0, posted_);

  rocegw_send_wqe wqe{};
  wqe.wr_id = posted_;
  wqe.flags = ROCEGW_WQE_SIGNALED;
  const bool ordered = end_.options().service_mode == verbs::ServiceMode::kByInitiator;
  switch (ordered ? random_.Below(3) : 0) {
    case 0:
      request.passes = true;
      if (ordered) wqe.flags |= ROCEGW_WQE_ORDER_NONE;
      break;
    case 1:
      wqe.flags |= ROCEGW_WQE_ORDER_RELAXED;
      break;
    default:
      request.waits = true;
      break;
  }
  wqe.imm_or_rkey = static_cast<uint32_t>(posted_);
  wqe.u.rdma.peer = other.handle;
  wqe.u.rdma.rkey = other.who->host_.key();
  wqe.u.rdma.remote_address = Host::kBase + other.who->TargetAt(number_, request.slot);
  uint64_t local = SourceAt(request.slot);
  switch (request.kind) {
    case Kind::kSend:
      wqe.opcode = ROCEGW_WR_SEND_WITH_IMM;
      break;
    case Kind::kWrite:
      wqe.opcode = ROCEGW_WR_RDMA_WRITE;
      break;
    case Kind::kWriteImm:
      wqe.opcode = ROCEGW_WR_RDMA_WRITE_WITH_IMM;
      break;
    case Kind::kRead:
      wqe.opcode = ROCEGW_WR_RDMA_READ;
      request.from = random_.Below(config_.max_length - request.length + 1);
      wqe.u.rdma.remote_address = Host::kBase + other.who->LibraryAt() + request.from;
      local = SinkAt(request.slot);
      break;
    case Kind::kFetchAdd:
      wqe.opcode = ROCEGW_WR_ATOMIC_FETCH_AND_ADD;
      request.length = 8;
      wqe.u.rdma.compare_add = 1;
      wqe.u.rdma.remote_address = Host::kBase + other.who->CounterAt();
      local = SinkAt(request.slot);
      break;
  }
  const bool sends = request.kind != Kind::kRead && request.kind != Kind::kFetchAdd;
  if (sends) arena_.Write(SourceAt(request.slot), request.length, request.stream, 0);
  if (!end_.PostSend(wqe, {{Host::kBase + local, request.length, host_.key()}})) return false;
  free_slots_.pop_back();
  if (request.kind == Kind::kFetchAdd) ++other.who->adds_;
  if (request.kind == Kind::kSend || request.kind == Kind::kWriteImm)
    messages_.emplace(posted_, request);
  requests_.emplace(posted_++, request);
  return true;
}

// The immediate says which message of its sender it is.
void Correspondent::OnReceive(const rocegw_cqe& cqe) {
  if (cqe.status != 0) return Fail("a receive fails with " + Number(cqe.status));
  if (std::count(free_inboxes_.begin(), free_inboxes_.end(), cqe.wr_id) != 0)
    return Fail("receive " + Number(cqe.wr_id) + " completes, and is not posted");
  free_inboxes_.push_back(cqe.wr_id);
  const auto from = std::find_if(others_.begin(), others_.end(), [&](const Other& other) {
    return other.who->end_.options().qpn == cqe.source_qpn;
  });
  if (from == others_.end()) return Fail("a message of nobody");
  Correspondent& sender = *from->who;
  const uint64_t id = cqe.imm_or_rkey;
  const auto found = sender.messages_.find(id);
  if (found == sender.messages_.end() || found->second.to != this)
    return Fail("message " + Number(id) + " comes again, or is not for this one");
  const Request message = found->second;
  for (auto before = sender.messages_.begin(); message.waits && before != found; ++before) {
    if (before->second.to == this && !before->second.passes)
      return Fail("message " + Number(id) + " has passed " + Number(before->first));
  }
  sender.messages_.erase(found);
  if (cqe.byte_length != message.length)
    return Fail(Number(cqe.byte_length) + " bytes instead of " + Number(message.length));
  bytes_ += message.length;
  const bool written = cqe.opcode == static_cast<uint8_t>(verbs::WcOpcode::kReceiveRdmaWithImm);
  if (written != (message.kind == Kind::kWriteImm)) return Fail("a message of another kind");
  if (written) {
    const uint64_t at = TargetAt(sender.number_, message.slot);
    arena_.Expect(at, message.length, message.stream, 0);
    return Check(arena_, at, Guarded(), "WRITE with immediate", id);
  }
  const uint64_t at = InboxAt(cqe.wr_id);
  if ((cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING) != 0) {
    std::memcpy(arena_.Bytes(at, message.length).data(), end_.rq_payload(cqe.ring_slot),
                message.length);
  }
  arena_.Expect(at, message.length, message.stream, 0);
  // An attempt that was given up may have left more of itself.
  Check(arena_, at, message.length, "SEND", id);
  Check(arena_, at + Guarded() - kGuard, kGuard, "bytes behind SEND", id);
  arena_.Write(at, config_.max_length, ~message.stream, 0);
}

void Correspondent::OnSent(const rocegw_cqe& cqe) {
  const auto found = requests_.find(cqe.wr_id);
  if (found == requests_.end()) return Fail("request " + Number(cqe.wr_id) + " completes twice");
  if (!end_.options().any_completion_order && found != requests_.begin())
    return Fail("request " + Number(cqe.wr_id) + " completes out of order");
  const Request request = found->second;
  requests_.erase(found);
  if (cqe.status != 0)
    return Fail("request " + Number(cqe.wr_id) + ": status " + Number(cqe.status));
  free_slots_.push_back(request.slot);
  Correspondent& to = *request.to;
  switch (request.kind) {
    case Kind::kSend:
      break;
    case Kind::kWrite:
    case Kind::kWriteImm: {
      const uint64_t at = to.TargetAt(number_, request.slot);
      to.arena_.Expect(at, request.length, request.stream, 0);
      Check(to.arena_, at, Guarded(), "WRITE", cqe.wr_id);
      // A copy of the WRITE that comes late must do nothing.
      to.arena_.Write(at, request.length, ~request.stream, 0);
      bytes_ += request.length;
      break;
    }
    case Kind::kRead:
      arena_.Expect(SinkAt(request.slot), request.length, to.library_stream(), request.from);
      Check(arena_, SinkAt(request.slot), Guarded(), "READ", cqe.wr_id);
      bytes_ += request.length;
      break;
    case Kind::kFetchAdd: {
      uint64_t before = 0;
      std::memcpy(&before, arena_.Bytes(SinkAt(request.slot), 8).data(), 8);
      if (before >= to.adds_ || !to.found_.insert(before).second)
        return Fail("atomic " + Number(cqe.wr_id) + " brings " + Number(before));
      arena_.ExpectWord(SinkAt(request.slot), before);
      ++to.added_;
      break;
    }
  }
}

void Correspondent::Look(TimePoint now) {
  if (!failure_.empty()) return;
  now_ = now;
  for (const rocegw_cqe& cqe : end_.Poll()) {
    (cqe.flags & ROCEGW_CQE_RECEIVE) != 0 ? OnReceive(cqe) : OnSent(cqe);
    if (!failure_.empty()) return;
  }
  PostReceives();
  bool rang = false;
  while (posted_ < config_.messages && !others_.empty() && !free_slots_.empty() &&
         (requests_.empty() || random_.Below(4) != 0)) {
    if (!PostOne()) break;
    rang = true;
  }
  if (rang) host_.Ring(end_);
}

std::string Correspondent::Describe() const {
  return "endpoint " + Number(number_) + ": " + Number(posted_) + " of " +
         Number(config_.messages) + " posted, " + Number(requests_.size()) + " not complete, " +
         Number(messages_.size()) + " not received, " + Number(free_inboxes_.size()) +
         " receives not posted";
}

}  // namespace rocegw::sim
