// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/oracle/speaker.h"

#include <algorithm>
#include <cstring>

#include "tests/sim/oracle/format.h"

namespace rocegw::sim {

Speaker::Speaker(Host& host, RingEnd& end, Arena& arena, const Place& place,
                 const SpeakerConfig& config, Random random)
    : host_(host), end_(end), arena_(arena), place_(place), plan_(config), random_(random) {
  arena_.Write(LibraryAt(), plan_.max_length, library_stream(), 0);
  arena_.WriteWord(CounterAt(), 0);
  host_.Add(*this);
}

void Speaker::SpoilLibrary() {
  for (uint8_t& byte : arena_.Bytes(LibraryAt(), plan_.max_length)) byte ^= 0x10;
}

void Speaker::Fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = Name() +
             Format(" at %.3f us: ", static_cast<double>(now_.ns - EventQueue::kStart.ns) / 1000) +
             what;
}

void Speaker::Check(Arena& arena, uint64_t at, uint64_t length, const char* what, uint64_t id) {
  const uint64_t wrong = arena.FirstDifference(at, length);
  if (wrong != at + length)
    Fail(Format("%s %llu: byte %llu is wrong", what, Wide(id), Wide(wrong - at)));
}

void Speaker::Look(TimePoint now) {
  if (!failure_.empty()) return;
  now_ = now;
  for (rocegw_cqe& cqe : end_.Poll()) {
    if (hides_flushes_) Falsify(cqe);
    (cqe.flags & ROCEGW_CQE_RECEIVE) != 0 ? OnReceive(cqe) : OnSent(cqe);
    if (!failure_.empty()) return;
  }
  if (Over()) return;
  PostReceives();
  PostRequests();
}

void Speaker::Falsify(rocegw_cqe& cqe) {
  if ((cqe.flags & ROCEGW_CQE_RECEIVE) != 0) return;
  if (has_failed_ && cqe.status == static_cast<uint8_t>(verbs::WcStatus::kFlush)) cqe.status = 0;
  has_failed_ |= cqe.status != 0;
}

void Speaker::PostReceives() {
  bool posted = false;
  while (LacksReceive() && random_.Below(100) >= plan_.late_receives && PostReceive())
    posted = true;
  if (posted && (end_.status().rq_starved != 0 || Broken())) host_.Ring(end_);
}

void Speaker::PostRequests() {
  bool rang = false;
  // If no completion is expected, the loop must not pause: no event would follow.
  while (posted_ < plan_.messages && MayPost() && (NothingAnnounced() || random_.Below(4) != 0) &&
         PostOne()) {
    ++posted_;
    rang = true;
  }
  if (rang) host_.Ring(end_);
}

uint32_t Speaker::DrawLength(uint32_t short_ones) {
  const bool is_short = random_.Below(short_ones) == 0;
  const uint32_t most = is_short ? std::min(plan_.max_length, 300u) : plan_.max_length;
  return static_cast<uint32_t>(random_.Below(most + 1));
}

uint64_t Speaker::Address(Request& request, const Speaker& to, rocegw_send_wqe& wqe) {
  wqe.wr_id = request.id;
  wqe.u.rdma.rkey = to.host_.key();
  wqe.u.rdma.remote_address = Host::kBase + to.TargetAt(place_.writer, request.slot);
  uint64_t local = SourceAt(request.slot);
  switch (request.kind) {
    case Kind::kSend:
      wqe.opcode = ROCEGW_WR_SEND;
      break;
    case Kind::kWrite:
      wqe.opcode = ROCEGW_WR_RDMA_WRITE;
      break;
    case Kind::kWriteImm:
      wqe.opcode = ROCEGW_WR_RDMA_WRITE_WITH_IMM;
      break;
    case Kind::kRead:
      wqe.opcode = ROCEGW_WR_RDMA_READ;
      request.from = random_.Below(plan_.max_length - request.length + 1);
      wqe.u.rdma.remote_address = Host::kBase + to.LibraryAt() + request.from;
      return SinkAt(request.slot);
    case Kind::kCompareSwap:
    case Kind::kFetchAdd:
      wqe.opcode = request.kind == Kind::kFetchAdd ? ROCEGW_WR_ATOMIC_FETCH_AND_ADD
                                                   : ROCEGW_WR_ATOMIC_CMP_AND_SWP;
      request.length = 8;
      wqe.u.rdma.remote_address = Host::kBase + to.CounterAt();
      return SinkAt(request.slot);
  }
  request.stream = StreamOf(request.kind == Kind::kSend ? kSent : kWritten, request.id);
  arena_.Write(local, request.length, request.stream, 0);
  return local;
}

void Speaker::CheckDone(const Request& request, Speaker& to) {
  switch (request.kind) {
    case Kind::kWrite:
    case Kind::kWriteImm: {
      const uint64_t at = to.TargetAt(place_.writer, request.slot);
      to.arena_.Expect(at, request.length, request.stream, 0);
      CheckSlot(to.arena_, at, "WRITE", request.id);
      // A late copy of the WRITE must change nothing.
      to.arena_.Write(at, request.length, ~request.stream, 0);
      bytes_ += request.length;
      break;
    }
    case Kind::kRead:
      arena_.Expect(SinkAt(request.slot), request.length, to.library_stream(), request.from);
      CheckSlot(arena_, SinkAt(request.slot), "READ", request.id);
      bytes_ += request.length;
      break;
    case Kind::kSend:  // the receiver checks it
    case Kind::kCompareSwap:
    case Kind::kFetchAdd:
      break;
  }
}

void Speaker::CheckAtomic(const Request& request, uint64_t original) {
  arena_.ExpectWord(SinkAt(request.slot), original);
  CheckSlot(arena_, SinkAt(request.slot), "atomic", request.id);
}

void Speaker::CheckMessage(const rocegw_cqe& cqe, const Receive& receive, const Request& message,
                           uint32_t writer, uint64_t id) {
  if (cqe.byte_length != message.length)
    return Fail(Format("received %u bytes instead of %u", cqe.byte_length, message.length));
  const bool written = cqe.opcode == static_cast<uint8_t>(verbs::WcOpcode::kReceiveRdmaWithImm);
  if (written != (message.kind == Kind::kWriteImm)) return Fail("a message of another kind");
  bytes_ += message.length;
  if (written) {
    const uint64_t at = TargetAt(writer, message.slot);
    arena_.Expect(at, message.length, message.stream, 0);
    return CheckSlot(arena_, at, "WRITE with immediate", id);
  }
  if ((cqe.flags & ROCEGW_CQE_PAYLOAD_IN_RING) != 0)
    std::memcpy(arena_.Bytes(receive.at, message.length).data(), receive.in_ring, message.length);
  arena_.Expect(receive.at, message.length, message.stream, 0);
  const uint64_t unsure = receive.tried ? receive.most : message.length;
  Check(arena_, receive.at, message.length, "SEND", id);
  Check(arena_, receive.at + unsure, Guarded(receive.most) - unsure, "bytes behind SEND", id);
}

}  // namespace rocegw::sim
