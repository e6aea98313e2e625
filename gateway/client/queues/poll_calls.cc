// SPDX-License-Identifier: Apache-2.0
// ibv_start_poll and the calls that follow it.
#include <cerrno>
#include <ctime>

#include "gateway/client/queues/completion_queue.h"

namespace rocegw::client {

namespace {

Cq* CqOf(ibv_cq_ex* ex) { return reinterpret_cast<Cq*>(ex); }
const ibv_wc& Current(ibv_cq_ex* ex) { return CqOf(ex)->current; }

int Next(ibv_cq_ex* ex) {
  Cq* cq = CqOf(ex);
  const int got = PollCompletions(cq, 1, &cq->current, &cq->current_ns);
  if (got == 0) return ENOENT;
  if (got < 0) return EIO;
  ex->wr_id = cq->current.wr_id;
  ex->status = cq->current.status;
  return 0;
}

// Programs do not call ibv_end_poll if this finds nothing.
int Start(ibv_cq_ex* ex, ibv_poll_cq_attr* attr) {
  if (attr != nullptr && attr->comp_mask != 0) return EINVAL;
  CqOf(ex)->polling.Lock();
  CqOf(ex)->wall_is_fresh = false;
  const int error = Next(ex);
  if (error != 0) CqOf(ex)->polling.Unlock();
  return error;
}

void End(ibv_cq_ex* ex) { CqOf(ex)->polling.Unlock(); }

ibv_wc_opcode Opcode(ibv_cq_ex* ex) { return Current(ex).opcode; }
uint32_t VendorError(ibv_cq_ex* ex) { return Current(ex).vendor_err; }
uint32_t ByteLength(ibv_cq_ex* ex) { return Current(ex).byte_len; }
__be32 Immediate(ibv_cq_ex* ex) { return Current(ex).imm_data; }
uint32_t QpNumber(ibv_cq_ex* ex) { return Current(ex).qp_num; }
uint32_t SourceQp(ibv_cq_ex* ex) { return Current(ex).src_qp; }
unsigned Flags(ibv_cq_ex* ex) { return Current(ex).wc_flags; }
uint32_t SourceLid(ibv_cq_ex* ex) { return Current(ex).slid; }
uint8_t ServiceLevel(ibv_cq_ex* ex) { return Current(ex).sl; }
uint8_t PathBits(ibv_cq_ex* ex) { return Current(ex).dlid_path_bits; }
uint64_t Timestamp(ibv_cq_ex* ex) { return CqOf(ex)->current_ns; }

uint64_t Nanoseconds(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// Refreshes the difference of the clocks, once per round of polling. A new value is used only if a
// clock was set: time that passes between the two readings is no such change.
void FreshenWallOffset(Cq* cq) {
  const uint64_t before = Nanoseconds(CLOCK_MONOTONIC);
  const uint64_t wall = Nanoseconds(CLOCK_REALTIME);
  const uint64_t after = Nanoseconds(CLOCK_MONOTONIC);
  cq->wall_is_fresh = true;
  const uint64_t most = wall - before;
  const uint64_t least = wall - after;
  if (cq->wall_offset < least || cq->wall_offset > most) cq->wall_offset = most;
}

// Never goes back within a completion queue, whatever happens to the clock.
uint64_t WallClock(ibv_cq_ex* ex) {
  Cq* cq = CqOf(ex);
  if (!cq->wall_is_fresh) FreshenWallOffset(cq);
  const uint64_t wall = cq->current_ns + cq->wall_offset;
  if (wall > cq->wall_last) cq->wall_last = wall;
  return cq->wall_last;
}

}  // namespace

void AddPollCalls(Cq* cq) {
  cq->ex.start_poll = &Start;
  cq->ex.next_poll = &Next;
  cq->ex.end_poll = &End;
  cq->ex.read_opcode = &Opcode;
  cq->ex.read_vendor_err = &VendorError;
  cq->ex.read_byte_len = &ByteLength;
  cq->ex.read_imm_data = &Immediate;
  cq->ex.read_qp_num = &QpNumber;
  cq->ex.read_src_qp = &SourceQp;
  cq->ex.read_wc_flags = &Flags;
  cq->ex.read_slid = &SourceLid;
  cq->ex.read_sl = &ServiceLevel;
  cq->ex.read_dlid_path_bits = &PathBits;
  cq->ex.read_completion_ts = &Timestamp;
  cq->ex.read_completion_wallclock_ns = &WallClock;
}

}  // namespace rocegw::client
