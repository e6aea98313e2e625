// SPDX-License-Identifier: Apache-2.0
// Queues that change while they are used: a completion queue's size with completions in it, and
// when its events are sent.
#include <chrono>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/connection.h"
#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

using std::chrono::milliseconds;

// One WRITE of the arena's first bytes, signaled.
void PostWrite(Connection& c, uint64_t id) {
  ibv_sge sge{reinterpret_cast<uint64_t>(c.arena().at(0)), 64, c.mr()->lkey};
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = c.remote_address(4096);
  wr.wr.rdma.rkey = c.rkey();
  ibv_send_wr* bad = nullptr;
  CheckCode(ibv_post_send(c.qp(0), &wr, &bad), "ibv_post_send");
}

void Expect(Connection& c, uint64_t first, uint64_t last) {
  for (uint64_t id = first; id <= last;) {
    for (const ibv_wc& wc : c.send().Wait(16, "completions of WRITEs")) {
      Check(wc.status == IBV_WC_SUCCESS && wc.wr_id == id, "a WRITE completes well, and in order");
      ++id;
    }
  }
}

void Resize(Connection& c, int entries) {
  CheckCode(ibv_resize_cq(c.send().cq(), entries), "ibv_resize_cq");
  Check(c.send().cq()->cqe >= entries, "the queue is as large as was asked for");
}

void CompletionQueue(Session& session, bool by_client) {
  Connection c(session, {});
  if (session.is_client == by_client) {
    uint64_t id = 0;
    // Larger and smaller, while completions come in and some are not polled yet.
    for (const int entries : {300, 40, 1000, 64}) {
      const uint64_t first = id;
      for (int i = 0; i < 16; ++i) PostWrite(c, id++);
      Resize(c, entries);
      for (int i = 0; i < 16; ++i) PostWrite(c, id++);
      Expect(c, first, id - 1);
    }
  }
  session.control.Sync("written");
  c.Close(session);
}

void Moderation(Session& session, bool by_client) {
  ConnectionOptions options;
  options.force_events = true;
  Connection c(session, options);
  // Soft-RoCE knows nothing of it.
  if (session.is_client == by_client && !c.local_is_rxe()) {
    ibv_modify_cq_attr attr{};
    attr.attr_mask = IBV_CQ_ATTR_MODERATE;
    attr.moderate = {4, 0};
    CheckCode(ibv_modify_cq(c.send().cq(), &attr), "ibv_modify_cq");
    c.send().Arm(false);
    for (uint64_t id = 0; id < 3; ++id) PostWrite(c, id);
    Check(!c.send().EventWithin(milliseconds(200)), "three of four completions raise no event");
    PostWrite(c, 3);
    Check(c.send().EventWithin(milliseconds(5000)), "the fourth does");
    Expect(c, 0, 3);
    attr.moderate = {100, 20000};
    CheckCode(ibv_modify_cq(c.send().cq(), &attr), "ibv_modify_cq");
    c.send().Arm(false);
    PostWrite(c, 4);
    Check(c.send().EventWithin(milliseconds(5000)), "the period's end does");
    Expect(c, 4, 4);
    attr.moderate = {100, 0};
    CheckCode(ibv_modify_cq(c.send().cq(), &attr), "ibv_modify_cq");
    c.send().Arm(false);
    PostWrite(c, 5);
    Check(!c.send().EventWithin(milliseconds(100)), "one of a hundred raises no event");
    attr.moderate = {0, 0};
    CheckCode(ibv_modify_cq(c.send().cq(), &attr), "ibv_modify_cq");
    Check(c.send().EventWithin(milliseconds(5000)), "what was held back is told");
    Expect(c, 5, 5);
  }
  session.control.Sync("written");
  c.Close(session);
}

}  // namespace

std::vector<Case> QueueCases() {
  return {{"queues.completion_queue_size", true, Needs::kAnything, CompletionQueue},
          {"queues.event_moderation", true, Needs::kAnything, Moderation}};
}

}  // namespace rocegw::interop
