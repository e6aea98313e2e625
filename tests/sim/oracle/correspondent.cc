// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle/correspondent.h"

#include <algorithm>
#include <cstring>

#include "tests/sim/oracle/format.h"

namespace rocegw::sim {
namespace {

// First number of a Correspondent among all speakers of a world; Talkers have lower ones.
constexpr uint64_t kFirstNumber = 1000;

}  // namespace

Correspondent::Correspondent(Host& host, RingEnd& end, Arena& arena, uint64_t base, uint32_t number,
                             size_t all, const SpeakerConfig& config, Random random)
    : Speaker(host, end, arena,
              {.base = base,
               .number = kFirstNumber + number,
               .writer = number,
               .writers = static_cast<uint32_t>(all)},
              config, random) {
  for (uint32_t slot = config.slots; slot != 0; --slot) {
    free_slots_.push_back(slot - 1);
    free_inboxes_.push_back(slot - 1);
  }
}

std::string Correspondent::Name() const { return Format("endpoint %u", place_.writer); }

bool Correspondent::PostReceive() {
  const uint64_t at = InboxAt(static_cast<uint32_t>(free_inboxes_.back()));
  if (!end_.PostReceive(free_inboxes_.back(), {{Host::kBase + at, plan_.max_length, host_.key()}}))
    return false;
  free_inboxes_.pop_back();
  return true;
}

uint16_t Correspondent::DrawOrder(Asked& request) {
  const bool ordered = end_.options().service_mode == verbs::ServiceMode::kByInitiator;
  switch (ordered ? random_.Below(3) : 0) {
    case 0:
      request.passes = true;
      return ordered ? ROCEGW_WQE_ORDER_NONE : 0;
    case 1:
      return ROCEGW_WQE_ORDER_RELAXED;
    default:
      request.waits = true;
      return 0;
  }
}

bool Correspondent::PostOne() {
  const Other& other = others_[random_.Below(others_.size())];
  Asked request;
  request.id = posted_;
  request.to = other.who;
  request.slot = free_slots_.back();
  constexpr Kind kKinds[] = {Kind::kSend,  Kind::kSend,     Kind::kSend, Kind::kWrite,
                             Kind::kWrite, Kind::kWriteImm, Kind::kRead, Kind::kFetchAdd};
  request.kind = kKinds[random_.Below(std::size(kKinds))];
  request.length = DrawLength(3);

  rocegw_send_wqe wqe{};
  wqe.flags = ROCEGW_WQE_SIGNALED | DrawOrder(request);
  const uint64_t local = Address(request, *other.who, wqe);
  if (request.kind == Kind::kSend) wqe.opcode = ROCEGW_WR_SEND_WITH_IMM;
  if (request.kind == Kind::kFetchAdd) wqe.u.rdma.compare_add = 1;
  wqe.imm_or_rkey = static_cast<uint32_t>(request.id);
  wqe.u.rdma.peer = other.handle;
  if (!end_.PostSend(wqe, {{Host::kBase + local, request.length, host_.key()}})) return false;
  free_slots_.pop_back();
  if (request.kind == Kind::kFetchAdd) ++other.who->adds_;
  if (request.takes_receive()) messages_.emplace(request.id, request);
  requests_.emplace(request.id, request);
  return true;
}

// The immediate identifies the message among its sender's.
void Correspondent::OnReceive(const rocegw_cqe& cqe) {
  if (cqe.status != 0) return Fail(Format("a receive fails with %u", cqe.status));
  if (std::count(free_inboxes_.begin(), free_inboxes_.end(), cqe.wr_id) != 0)
    return Fail(Format("receive %llu completes, and is not posted", Wide(cqe.wr_id)));
  free_inboxes_.push_back(cqe.wr_id);
  const auto from = std::find_if(others_.begin(), others_.end(), [&](const Other& other) {
    return other.who->end_.options().qpn == cqe.source_qpn;
  });
  if (from == others_.end()) return Fail("a message of nobody");
  Correspondent& sender = *from->who;
  const uint64_t id = cqe.imm_or_rkey;
  const auto found = sender.messages_.find(id);
  if (found == sender.messages_.end() || found->second.to != this)
    return Fail(Format("message %llu comes again, or is not for this one", Wide(id)));
  const Asked message = found->second;
  for (auto before = sender.messages_.begin(); message.waits && before != found; ++before) {
    if (before->second.to == this && !before->second.passes)
      return Fail(Format("message %llu has passed %llu", Wide(id), Wide(before->first)));
  }
  sender.messages_.erase(found);
  // An attempt that was abandoned may have left other bytes in the slot.
  const Receive receive{InboxAt(static_cast<uint32_t>(cqe.wr_id)), plan_.max_length,
                        end_.rq_payload(cqe.ring_slot), true};
  CheckMessage(cqe, receive, message, sender.place_.writer, id);
  if (message.kind == Kind::kSend) arena_.Write(receive.at, plan_.max_length, ~message.stream, 0);
}

void Correspondent::OnAtomic(const Asked& request) {
  Correspondent& to = *request.to;
  uint64_t before = 0;
  std::memcpy(&before, arena_.Bytes(SinkAt(request.slot), 8).data(), 8);
  if (before >= to.adds_ || !to.found_.insert(before).second)
    return Fail(Format("atomic %llu brings %llu", Wide(request.id), Wide(before)));
  CheckAtomic(request, before);
  ++to.added_;
}

void Correspondent::OnSent(const rocegw_cqe& cqe) {
  const auto found = requests_.find(cqe.wr_id);
  if (found == requests_.end())
    return Fail(Format("request %llu completes twice", Wide(cqe.wr_id)));
  if (!end_.options().any_completion_order && found != requests_.begin())
    return Fail(Format("request %llu completes out of order", Wide(cqe.wr_id)));
  const Asked request = found->second;
  requests_.erase(found);
  if (cqe.status != 0) return Fail(Format("request %llu: status %u", Wide(request.id), cqe.status));
  free_slots_.push_back(request.slot);
  CheckDone(request, *request.to);
  if (request.kind == Kind::kFetchAdd) OnAtomic(request);
}

bool Correspondent::done() const {
  return !failure().empty() ||
         ((posted_ == plan_.messages || others_.empty()) && requests_.empty() && messages_.empty());
}

std::string Correspondent::Describe() const {
  return Name() + Format(
                      ": %llu of %llu posted, %zu not complete, %zu not received, %zu receives "
                      "not posted",
                      Wide(posted_), Wide(plan_.messages), requests_.size(), messages_.size(),
                      free_inboxes_.size());
}

}  // namespace rocegw::sim
