// SPDX-License-Identifier: Apache-2.0
// FLUSH and ATOMIC WRITE (IBTA annex A19), for stacks of which both have them: asked for by name.
// Programs of older headers have no ibv_wr_flush, so what it calls is found by its place.
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/connection.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/rdma_check/transfer.h"

namespace rocegw::interop {
namespace {

constexpr uint8_t kGlobal = 1;  // IBV_FLUSH_GLOBAL
constexpr uint8_t kRange = 0;   // IBV_FLUSH_RANGE
constexpr uint8_t kRegion = 1;  // IBV_FLUSH_MR
constexpr int kFlushed = 8;     // IBV_WC_FLUSH
constexpr uint32_t kTarget = 4096;
constexpr uint32_t kPlacedWords = 64;

ConnectionOptions Options() {
  return {.send_ops = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | kWithFlush,
          .more_access = kFlushGlobal};
}

void PostFlush(ibv_qp_ex* ex, uint32_t rkey, uint64_t address, size_t length, uint8_t level) {
  using Call = void (*)(ibv_qp_ex*, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
  Call call;
  std::memcpy(
      &call,
      reinterpret_cast<const uint8_t*>(ex) + offsetof(ibv_qp_ex, wr_atomic_write) + sizeof(void*),
      sizeof call);
  call(ex, rkey, address, length, kGlobal, level);
}

void Begin(ibv_qp_ex* ex, uint64_t id) {
  ibv_wr_start(ex);
  ex->wr_id = id;
  ex->wr_flags = IBV_SEND_SIGNALED;
}

void ExpectDone(Connection& c, int opcode, const char* what) {
  const ibv_wc wc = c.send().WaitOne(what);
  Check(wc.status == IBV_WC_SUCCESS, what, " ended with ", ibv_wc_status_str(wc.status));
  Check(int{wc.opcode} == opcode, what, " completed as opcode ", int{wc.opcode});
}

uint64_t ValueOf(uint32_t i) { return 0x0101010101010101u * (i + 1); }

// By both calls, several under way at a time; each word is what came last.
void AtomicWrite(Session& session, bool by_client) {
  Connection c(session, Options());
  Arena& arena = c.arena();
  if (session.is_client == by_client) {
    ibv_qp_ex* const ex = ibv_qp_to_qp_ex(c.qp(0));
    for (uint32_t i = 0; i < kPlacedWords; ++i) {
      arena.SetWord(8 * i, ~ValueOf(i));
      ibv_sge sge{arena.address(8 * i), 8, c.mr()->lkey};
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_ATOMIC_WRITE;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.wr.rdma = {c.remote_address(kTarget + 8 * i), c.rkey()};
      PostSend(c.qp(0), &wr);
      const uint64_t value = ValueOf(i);
      Begin(ex, i);
      ibv_wr_atomic_write(ex, c.rkey(), c.remote_address(kTarget + 8 * i), &value);
      CheckCode(ibv_wr_complete(ex), "ibv_wr_complete");
      if (i % 16 == 15)
        for (int k = 0; k < 16; ++k) ExpectDone(c, IBV_WC_ATOMIC_WRITE, "an ATOMIC WRITE");
    }
    session.control.Sync("written");
  } else {
    session.control.Sync("written");
    for (uint32_t i = 0; i < kPlacedWords; ++i) arena.ExpectWord(kTarget + 8 * i, ValueOf(i));
  }
  arena.Verify("after ATOMIC WRITEs");
  c.Close(session, by_client);
}

// What was written before it is there when it completes, whichever bytes it names.
void FlushBehindWrites(Session& session, bool by_client) {
  Connection c(session, Options());
  Arena& arena = c.arena();
  constexpr uint32_t kFlushedBytes = 100000;
  const std::vector<Piece> source = {{0, kFlushedBytes}};
  const std::vector<Piece> target = {{kFlushedBytes, kFlushedBytes}};
  for (const uint8_t level : {kRange, kRegion}) {
    const uint64_t pattern = session.settings.seed + level;
    if (session.is_client == by_client) {
      ibv_qp_ex* const ex = ibv_qp_to_qp_ex(c.qp(0));
      arena.Fill(source, pattern);
      Begin(ex, 1);
      ex->wr_flags = 0;
      ibv_wr_rdma_write(ex, c.rkey(), c.remote_address(kFlushedBytes));
      ibv_wr_set_sge(ex, c.mr()->lkey, arena.address(0), kFlushedBytes);
      ex->wr_flags = IBV_SEND_SIGNALED;
      const bool range = level == kRange;
      PostFlush(ex, c.rkey(), range ? c.remote_address(kFlushedBytes) : 0,
                range ? kFlushedBytes : 0, level);
      CheckCode(ibv_wr_complete(ex), "ibv_wr_complete");
      ExpectDone(c, kFlushed, "a FLUSH");
    } else {
      arena.Expect(target, pattern, kFlushedBytes);
    }
    session.control.Sync("flushed");
    arena.Verify("after a FLUSH");
    session.control.Sync("verified");
  }
  c.Close(session, by_client);
}

void ExpectRefused(Session& session, bool by_client, ConnectionOptions options,
                   ibv_wc_status status, void (*post)(Connection&, ibv_qp_ex*)) {
  Connection c(session, options);
  if (session.is_client == by_client) {
    ibv_qp_ex* const ex = ibv_qp_to_qp_ex(c.qp(0));
    Begin(ex, 1);
    post(c, ex);
    CheckCode(ibv_wr_complete(ex), "ibv_wr_complete");
    const ibv_wc wc = c.send().WaitOne("what must be refused");
    Check(wc.status == status, "it ended with ", ibv_wc_status_str(wc.status));
  }
  session.control.Sync("refused");
  c.arena().Verify("after a refusal");
  c.Close(session, by_client);
}

void RefusedPlacement(Session& session, bool by_client) {
  ExpectRefused(session, by_client, Options(), IBV_WC_REM_INV_REQ_ERR,
                [](Connection& c, ibv_qp_ex* ex) {
                  const uint64_t value = ~uint64_t{0};
                  ibv_wr_atomic_write(ex, c.rkey(), c.remote_address(kTarget + 4), &value);
                });
  ExpectRefused(session, by_client, Options(), IBV_WC_REM_ACCESS_ERR,
                [](Connection& c, ibv_qp_ex* ex) {
                  PostFlush(ex, c.rkey(), c.remote_address(Arena::kSize - 8), 9, kRange);
                });
  // Queue pairs may be flushed by, the region not.
  ConnectionOptions options = Options();
  options.more_access = 0;
  ExpectRefused(session, by_client, options, IBV_WC_REM_ACCESS_ERR,
                [](Connection& c, ibv_qp_ex* ex) {
                  PostFlush(ex, c.rkey(), c.remote_address(kTarget), 8, kRange);
                });
}

}  // namespace

std::vector<Case> PlacementCases() {
  return {{"placement.atomic_write", true, Needs::kAnything, AtomicWrite},
          {"placement.flush", true, Needs::kAnything, FlushBehindWrites},
          {"placement.refused", true, Needs::kAnything, RefusedPlacement}};
}

}  // namespace rocegw::interop
