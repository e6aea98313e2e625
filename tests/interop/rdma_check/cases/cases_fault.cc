// SPDX-License-Identifier: Apache-2.0
// What must fail, and how: the completion status of the side at fault, the flush of what follows,
// and that no byte of memory changed.
#include <chrono>
#include <functional>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/rdma_check/transfer.h"

namespace rocegw::interop {
namespace {

constexpr uint32_t kLength = 64;

void ExpectStatus(const ibv_wc& wc, ibv_wc_status expected, const char* what) {
  Check(wc.status == expected, what, " completed with '", ibv_wc_status_str(wc.status),
        "', must be '", ibv_wc_status_str(expected), "'");
}

Operation OneOperation(Session& session, Verb verb, bool by_client) {
  Plan plan(session.settings.seed);
  if (IsAtomic(verb)) return plan.AddAtomic(verb, by_client, 0, 1);
  return plan.Add(verb, by_client, kLength);
}

// Posts a request that must fail and one behind it that must be flushed; the queue pair must end in
// the error state.
void ExpectFailure(Connection& connection, ibv_send_wr wr, ibv_wc_status status, const char* what) {
  wr.wr_id = 1;
  PostSend(connection.qp(0), &wr);
  const ibv_wc failed = connection.send().WaitOne(what);
  ExpectStatus(failed, status, what);
  Check(failed.wr_id == 1, "failed request has wr_id ", failed.wr_id);
  Check(connection.State(0) == IBV_QPS_ERR, "queue pair is in state ", int{connection.State(0)},
        " after ", what);
  wr.wr_id = 2;
  PostSend(connection.qp(0), &wr);
  const ibv_wc flushed = connection.send().WaitOne("flushed request");
  ExpectStatus(flushed, IBV_WC_WR_FLUSH_ERR, "request behind the failed one");
  Check(flushed.wr_id == 2, "flushed request has wr_id ", flushed.wr_id);
}

// One request that `spoil` makes wrong; the responder's memory must stay as it is.
struct Spoiled {
  Verb verb;
  const char* what;
  std::function<void(Connection&, ibv_send_wr*)> spoil;
  ibv_wc_status status;
  // Where rxe as requester answers otherwise: its status, or that it refuses the request when it is
  // posted.
  ibv_wc_status rxe_status = IBV_WC_SUCCESS;
  bool rxe_refuses = false;
};

void RequestFault(Session& session, bool by_client, const Spoiled& fault) {
  Connection connection(session, {});
  const Operation op = OneOperation(session, fault.verb, by_client);
  session.control.Sync("prepared");
  if (session.is_client == by_client) {
    std::vector<ibv_sge> sges;
    ibv_send_wr wr = BuildRequest(connection, op, 1, &sges);
    fault.spoil(connection, &wr);
    if (connection.local_is_rxe() && fault.rxe_refuses) {
      ibv_send_wr* bad = nullptr;
      Check(ibv_post_send(connection.qp(0), &wr, &bad) != 0 && bad == &wr, "rxe took a ",
            fault.what);
    } else {
      const bool other = connection.local_is_rxe() && fault.rxe_status != IBV_WC_SUCCESS;
      ExpectFailure(connection, wr, other ? fault.rxe_status : fault.status, fault.what);
    }
  }
  session.control.Sync("failed");
  connection.arena().Verify(fault.what);
  connection.Close(session, by_client);
}

void BadRemoteKey(Session& session, Verb verb, bool by_client) {
  RequestFault(session, by_client,
               {.verb = verb,
                .what = "request with a wrong R_Key",
                .spoil =
                    [verb](Connection&, ibv_send_wr* wr) {
                      (IsAtomic(verb) ? wr->wr.atomic.rkey : wr->wr.rdma.rkey) ^= 0x5A;
                    },
                .status = IBV_WC_REM_ACCESS_ERR});
}

void BeyondRegion(Session& session, Verb verb, bool by_client) {
  RequestFault(session, by_client,
               {.verb = verb,
                .what = "request beyond the region",
                .spoil =
                    [](Connection& connection, ibv_send_wr* wr) {
                      wr->wr.rdma.remote_addr = connection.remote_address(
                          static_cast<uint32_t>(Arena::kSize - kLength + 1));
                    },
                .status = IBV_WC_REM_ACCESS_ERR});
}

void BadLocalKey(Session& session, bool by_client) {
  RequestFault(session, by_client,
               {.verb = Verb::kWrite,
                .what = "request with a wrong L_Key",
                .spoil = [](Connection&, ibv_send_wr* wr) { wr->sg_list[0].lkey ^= 0x5A; },
                .status = IBV_WC_LOC_PROT_ERR,
                .rxe_status = IBV_WC_LOC_QP_OP_ERR});
}

void MisalignedAtomic(Session& session, bool by_client) {
  RequestFault(session, by_client,
               {.verb = Verb::kFetchAdd,
                .what = "misaligned atomic",
                .spoil = [](Connection&, ibv_send_wr* wr) { wr->wr.atomic.remote_addr += 4; },
                .status = IBV_WC_REM_INV_REQ_ERR,
                .rxe_refuses = true});
}

// A region of the responder that lacks a permission or is gone by the time of the request.
void SecondRegion(Session& session, Verb verb, bool by_client, int access, bool gone) {
  Connection connection(session, {});
  const Operation op = OneOperation(session, verb, by_client);
  const bool requester = session.is_client == by_client;
  Owned<ibv_mr> region;
  std::string mine = "0";
  if (!requester) {
    region.reset(ibv_reg_mr(connection.pd(), connection.arena().at(0), Arena::kSize, access));
    CheckErrno(region != nullptr, "ibv_reg_mr with access ", access);
    mine = std::to_string(region->rkey);
    if (gone) region.reset();
  }
  const auto rkey = static_cast<uint32_t>(std::stoul(session.control.Exchange(mine)));
  if (requester) {
    std::vector<ibv_sge> sges;
    ibv_send_wr wr = BuildRequest(connection, op, 1, &sges);
    wr.wr.rdma.rkey = rkey;
    ExpectFailure(connection, wr, IBV_WC_REM_ACCESS_ERR,
                  gone ? "request to a deregistered region" : "request without permission");
  }
  session.control.Sync("failed");
  connection.arena().Verify("after a refused request");
  connection.Close(session);
}

void ReceiveTooSmall(Session& session, bool by_client) {
  Connection connection(session, {});
  Plan plan(session.settings.seed);
  const Operation op = plan.Add(Verb::kSend, by_client, connection.path_mtu() + 100);
  const bool requester = session.is_client == by_client;
  if (!requester) {
    Piece small = op.remote[0];
    small.length = connection.path_mtu() + 99;
    PostReceive(connection, 0, {small}, 7);
  }
  session.control.Sync("prepared");
  if (requester) {
    std::vector<ibv_sge> sges;
    ExpectFailure(connection, BuildRequest(connection, op, 1, &sges),
                  connection.remote_is_rxe() ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR,
                  "SEND longer than its receive");
  } else {
    const ibv_wc wc = connection.receive().WaitOne("receive that is too small");
    ExpectStatus(wc, connection.local_is_rxe() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR,
                 "receive that is too small");
    Check(wc.wr_id == 7, "failed receive has wr_id ", wc.wr_id);
    // A first packet may have been placed; beyond the buffer nothing may have changed.
    Piece small = op.remote[0];
    small.length = connection.path_mtu() + 99;
    connection.arena().Accept(small);
  }
  session.control.Sync("failed");
  connection.arena().Verify("after a SEND longer than its receive");
  connection.Close(session);
}

void NoReceive(Session& session, bool by_client) {
  Connection connection(session, {.rnr_retry = 0});
  const Operation op = OneOperation(session, Verb::kSend, by_client);
  session.control.Sync("prepared");
  if (session.is_client == by_client) {
    std::vector<ibv_sge> sges;
    ExpectFailure(connection, BuildRequest(connection, op, 1, &sges), IBV_WC_RNR_RETRY_EXC_ERR,
                  "SEND without a receive");
  }
  session.control.Sync("failed");
  connection.arena().Verify("after a SEND without a receive");
  connection.Close(session);
}

// The receive is posted only when the SEND has met an empty queue.
void LateReceive(Session& session, bool by_client) {
  Connection connection(session, {.rnr_retry = 7});
  Plan plan(session.settings.seed);
  const bool requester = session.is_client == by_client;
  std::vector<Operation> operations;
  for (uint32_t i = 0; i < 4; ++i) {
    operations.push_back(plan.Add(Verb::kSend, by_client, 3 * connection.path_mtu() + i));
  }
  std::vector<std::vector<ibv_sge>> sges(operations.size());
  if (requester) {
    for (uint32_t i = 0; i < operations.size(); ++i) {
      connection.arena().Fill(operations[i].local, operations[i].seed);
      ibv_send_wr wr = BuildRequest(connection, operations[i], i, &sges[i]);
      PostSend(connection.qp(0), &wr);
    }
    connection.send().ExpectNone(std::chrono::milliseconds(50), "no receive was posted");
  }
  session.control.Sync("sent");
  for (uint32_t i = 0; i < operations.size(); ++i) {
    if (!requester) {
      connection.arena().Expect(operations[i].remote, operations[i].seed, operations[i].length);
      PostReceive(connection, 0, operations[i].remote, i);
      const ibv_wc wc = connection.receive().WaitOne("late receive");
      ExpectStatus(wc, IBV_WC_SUCCESS, "late receive");
      Check(wc.wr_id == i && wc.byte_len == operations[i].length, "late receive has wr_id ",
            wc.wr_id, " and length ", wc.byte_len);
    } else {
      const ibv_wc wc = connection.send().WaitOne("SEND with a late receive");
      ExpectStatus(wc, IBV_WC_SUCCESS, "SEND with a late receive");
      Check(wc.wr_id == i, "SEND completed with wr_id ", wc.wr_id);
    }
  }
  session.control.Sync("completed");
  connection.arena().Verify("after late receives");
  connection.Close(session);
}

void Flush(Session& session, bool by_client) {
  constexpr uint32_t kReceives = 5;
  Connection connection(session, {});
  if (session.is_client == by_client) {
    Plan plan(session.settings.seed);
    for (uint32_t i = 0; i < kReceives; ++i) {
      PostReceive(connection, 0, plan.Add(Verb::kSend, !by_client, kLength).remote, i);
    }
    ToError(connection.qp(0));
    for (uint32_t i = 0; i < kReceives; ++i) {
      const ibv_wc wc = connection.receive().WaitOne("flushed receive");
      ExpectStatus(wc, IBV_WC_WR_FLUSH_ERR, "receive of a queue pair in error");
      Check(wc.wr_id == i, "receives flushed out of order");
    }
    const Operation op = OneOperation(session, Verb::kSend, by_client);
    std::vector<ibv_sge> sges;
    ibv_send_wr wr = BuildRequest(connection, op, 9, &sges);
    PostSend(connection.qp(0), &wr);
    const ibv_wc wc = connection.send().WaitOne("flushed request");
    ExpectStatus(wc, IBV_WC_WR_FLUSH_ERR, "request to a queue pair in error");
  }
  connection.arena().Verify("after a flush");
  connection.Close(session);
}

// The peer's queue pair is gone without a word: the requester must give up by itself.
void PeerGone(Session& session, bool by_client) {
  Connection connection(session, {.retry_count = 1});
  const Operation op = OneOperation(session, Verb::kWrite, by_client);
  const bool requester = session.is_client == by_client;
  if (!requester) connection.Destroy(0);
  session.control.Sync("gone");
  if (requester) {
    std::vector<ibv_sge> sges;
    ExpectFailure(connection, BuildRequest(connection, op, 1, &sges), IBV_WC_RETRY_EXC_ERR,
                  "request to a peer that is gone");
  }
  session.control.Sync("failed");
  connection.arena().Verify("after the peer was gone");
  connection.Close(session);
}

}  // namespace

std::vector<Case> FaultCases() {
  std::vector<Case> cases;
  const auto add = [&cases](const std::string& name, auto function) {
    cases.push_back({"fault." + name, true, Needs::kAnything, function});
  };
  for (const Verb verb : {Verb::kWrite, Verb::kRead, Verb::kFetchAdd}) {
    add(std::string("remote_key.") + Name(verb),
        [verb](Session& s, bool c) { BadRemoteKey(s, verb, c); });
  }
  for (const Verb verb : {Verb::kWrite, Verb::kRead}) {
    const std::string name = Name(verb);
    add("bounds." + name, [verb](Session& s, bool c) { BeyondRegion(s, verb, c); });
    add("deregistered." + name,
        [verb](Session& s, bool c) { SecondRegion(s, verb, c, kAllAccess, true); });
  }
  add("permission.write", [](Session& s, bool c) {
    SecondRegion(s, Verb::kWrite, c, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, false);
  });
  add("permission.read", [](Session& s, bool c) {
    SecondRegion(s, Verb::kRead, c, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, false);
  });
  add("local_key", BadLocalKey);
  add("misaligned_atomic", MisalignedAtomic);
  add("receive_too_small", ReceiveTooSmall);
  add("no_receive", NoReceive);
  add("late_receive", LateReceive);
  add("flush", Flush);
  // With rdma_cm the time-out is the kernel's choice, seconds; the transport is the same.
  cases.push_back({"fault.peer_gone", true, Needs::kSocket, PeerGone});
  return cases;
}

}  // namespace rocegw::interop
