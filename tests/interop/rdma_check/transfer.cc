// SPDX-License-Identifier: Apache-2.0
#include "tests/interop/rdma_check/transfer.h"

#include <arpa/inet.h>

#include <algorithm>
#include <deque>

#include "tests/interop/rdma_check/failure.h"

namespace rocegw::interop {
namespace {

// Bytes behind a SEND's payload that its receive offers and that must stay as they were.
constexpr uint32_t kReceiveSlack = 16;

ibv_wr_opcode RequestOpcode(Verb verb) {
  switch (verb) {
    case Verb::kSend:
      return IBV_WR_SEND;
    case Verb::kSendImm:
      return IBV_WR_SEND_WITH_IMM;
    case Verb::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Verb::kWriteImm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case Verb::kRead:
      return IBV_WR_RDMA_READ;
    case Verb::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Verb::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
  Fail("no such verb");
}

ibv_wc_opcode CompletionOpcode(Verb verb) {
  switch (verb) {
    case Verb::kSend:
    case Verb::kSendImm:
      return IBV_WC_SEND;
    case Verb::kWrite:
    case Verb::kWriteImm:
      return IBV_WC_RDMA_WRITE;
    case Verb::kRead:
      return IBV_WC_RDMA_READ;
    case Verb::kCompareSwap:
      return IBV_WC_COMP_SWAP;
    case Verb::kFetchAdd:
      return IBV_WC_FETCH_ADD;
  }
  Fail("no such verb");
}

uint64_t AtomicResult(const Operation& op) {
  if (op.verb == Verb::kFetchAdd) return op.before + op.compare_or_add;
  return op.before == op.compare_or_add ? op.swap : op.before;
}

// One side's run through the list.
class Runner {
 public:
  Runner(Session& session, Connection& connection, const std::vector<Operation>& operations)
      : session_(session), connection_(connection), operations_(operations) {
    order_.resize(connection.qps());
    expected_receives_.resize(connection.qps());
  }

  void Run() {
    Prepare();
    session_.control.Sync("prepared");
    Requester();
    Responder();
    session_.control.Sync("completed");
    connection_.arena().Verify("after the transfers");
    session_.control.Sync("verified");
  }

 private:
  bool Mine(const Operation& op) const { return op.by_client == session_.is_client; }

  void Prepare() {
    Arena& arena = connection_.arena();
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      const Operation& op = operations_[i];
      if (IsAtomic(op.verb)) {
        if (Mine(op)) {
          arena.ExpectWord(op.local[0].offset, op.before);
        } else {
          arena.SetWord(op.remote[0].offset, op.before);
          arena.ExpectWord(op.remote[0].offset, AtomicResult(op));
        }
        continue;
      }
      if (Mine(op)) {
        if (op.verb == Verb::kRead) {
          arena.Expect(op.local, op.seed, op.length);
        } else if (!op.chained) {
          arena.Fill(op.local, op.seed);
        }
        continue;
      }
      if (op.verb == Verb::kRead) {
        arena.Fill(op.remote, op.seed);
      } else {
        arena.Expect(op.remote, op.seed, op.length);
      }
      if (TakesReceive(op.verb)) {
        PostReceive(connection_, op.qp,
                    op.verb == Verb::kWriteImm ? std::vector<Piece>{} : op.remote, i);
        expected_receives_[op.qp].push_back(i);
      }
    }
  }

  void Requester() {
    const uint32_t depth = connection_.options().depth;
    std::vector<uint32_t> outstanding(connection_.qps());
    uint32_t next = 0;
    while (next < operations_.size()) {
      // Chains of one to four requests to one queue pair, as programs post them.
      std::vector<ibv_send_wr> chain;
      std::deque<std::vector<ibv_sge>> sges;
      std::vector<uint32_t> inline_posted;
      uint32_t qp = 0;
      while (next < operations_.size() && chain.size() < 1 + operations_[next].seed % 4) {
        const Operation& op = operations_[next];
        if (!Mine(op)) {
          ++next;
          continue;
        }
        if ((!chain.empty() && op.qp != qp) || outstanding[op.qp] == depth) break;
        // rxe of Linux 6.1 may never wake up from a fence (its wait races with its completer), so
        // with rxe as requester the program waits itself.
        const bool wait_instead = op.fence && connection_.local_is_rxe();
        if (wait_instead && outstanding[op.qp] > 0) break;
        qp = op.qp;
        sges.emplace_back();
        chain.push_back(BuildRequest(connection_, op, next, &sges.back()));
        if (wait_instead) chain.back().send_flags &= ~static_cast<unsigned>(IBV_SEND_FENCE);
        if (op.use_inline) inline_posted.push_back(next);
        order_[qp].push_back(next);
        ++outstanding[qp];
        ++next;
      }
      for (size_t i = 0; i + 1 < chain.size(); ++i) chain[i].next = &chain[i + 1];
      if (!chain.empty()) PostSend(connection_.qp(qp), chain.data());
      // Inline data belongs to the program again as soon as the call returns.
      for (const uint32_t i : inline_posted) connection_.arena().Fill(operations_[i].local, ~i);
      if (chain.empty() && next < operations_.size()) Complete(&outstanding);
    }
    while (std::any_of(outstanding.begin(), outstanding.end(), [](uint32_t n) { return n > 0; })) {
      Complete(&outstanding);
    }
  }

  // Takes completions of own requests: in order per queue pair; one signaled stands for the
  // unsignaled before it.
  void Complete(std::vector<uint32_t>* outstanding) {
    for (const ibv_wc& wc : connection_.send().Wait(16, "requests")) {
      const uint32_t qp = connection_.IndexOf(wc.qp_num);
      Check(wc.wr_id < operations_.size(), "completion with wr_id ", wc.wr_id);
      const Operation& op = operations_[wc.wr_id];
      Check(wc.status == IBV_WC_SUCCESS, Name(op.verb), " of ", op.length, " bytes (request ",
            wc.wr_id, "): ", ibv_wc_status_str(wc.status));
      Check(wc.opcode == CompletionOpcode(op.verb), Name(op.verb), " completed with opcode ",
            int{wc.opcode});
      if (op.verb == Verb::kRead) {
        Check(wc.byte_len == op.length, "READ of ", op.length, " completed with length ",
              wc.byte_len);
      }
      while (true) {
        Check(!order_[qp].empty(), "completion of request ", wc.wr_id, " out of order");
        const uint32_t first = order_[qp].front();
        order_[qp].pop_front();
        --(*outstanding)[qp];
        if (first == wc.wr_id) break;
        Check(!operations_[first].signaled, "request ", first, " has no completion before that of ",
              wc.wr_id);
      }
    }
  }

  void Responder() {
    size_t due = 0;
    for (const auto& queue : expected_receives_) due += queue.size();
    while (due > 0) {
      for (const ibv_wc& wc : connection_.receive().Wait(16, "receives")) {
        const uint32_t qp = connection_.IndexOf(wc.qp_num);
        Check(wc.status == IBV_WC_SUCCESS, "receive: ", ibv_wc_status_str(wc.status));
        Check(!expected_receives_[qp].empty(), "one receive completion too many");
        const uint32_t i = expected_receives_[qp].front();
        expected_receives_[qp].pop_front();
        --due;
        const Operation& op = operations_[i];
        Check(wc.wr_id == i, "receive ", wc.wr_id, " completed where ", i, " was due");
        const ibv_wc_opcode opcode =
            op.verb == Verb::kWriteImm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
        Check(wc.opcode == opcode, "receive for ", Name(op.verb), " has opcode ", int{wc.opcode});
        Check(wc.byte_len == op.length, "receive for ", Name(op.verb), " of ", op.length,
              " bytes says ", wc.byte_len);
        const bool with_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
        Check(with_immediate == HasImmediate(op.verb), "receive for ", Name(op.verb),
              ": immediate flag is ", with_immediate);
        Check(!with_immediate || ntohl(wc.imm_data) == op.immediate, "immediate is ",
              ntohl(wc.imm_data), ", must be ", op.immediate);
      }
    }
  }

  Session& session_;
  Connection& connection_;
  const std::vector<Operation>& operations_;
  // Per queue pair, by index into the list: receives that have not completed, requests that have
  // not completed.
  std::vector<std::deque<uint32_t>> expected_receives_;
  std::vector<std::deque<uint32_t>> order_;
};

}  // namespace

const char* Name(Verb verb) {
  switch (verb) {
    case Verb::kSend:
      return "send";
    case Verb::kSendImm:
      return "send_imm";
    case Verb::kWrite:
      return "write";
    case Verb::kWriteImm:
      return "write_imm";
    case Verb::kRead:
      return "read";
    case Verb::kCompareSwap:
      return "compare_swap";
    case Verb::kFetchAdd:
      return "fetch_add";
  }
  return "?";
}

Operation& Plan::Add(Verb verb, bool by_client, uint32_t length, uint32_t local_pieces,
                     uint32_t remote_pieces) {
  Operation op;
  op.verb = verb;
  op.by_client = by_client;
  op.length = length;
  op.seed = random_();
  op.immediate = static_cast<uint32_t>(random_());
  Layout& requester = by_client ? client_layout_ : server_layout_;
  Layout& responder = by_client ? server_layout_ : client_layout_;
  op.local = requester.TakeSplit(length, local_pieces);
  const bool is_send = verb == Verb::kSend || verb == Verb::kSendImm;
  op.remote =
      responder.TakeSplit(length + (is_send ? kReceiveSlack : 0), is_send ? remote_pieces : 1);
  operations_.push_back(op);
  return operations_.back();
}

Operation& Plan::AddAtomic(Verb verb, bool by_client, uint64_t before, uint64_t compare_or_add,
                           uint64_t swap) {
  Operation op;
  op.verb = verb;
  op.by_client = by_client;
  op.length = sizeof(uint64_t);
  op.seed = random_();
  op.before = before;
  op.compare_or_add = compare_or_add;
  op.swap = swap;
  Layout& requester = by_client ? client_layout_ : server_layout_;
  Layout& responder = by_client ? server_layout_ : client_layout_;
  op.local = {requester.Take(sizeof(uint64_t), sizeof(uint64_t))};
  op.remote = {responder.Take(sizeof(uint64_t), sizeof(uint64_t))};
  operations_.push_back(op);
  return operations_.back();
}

ibv_send_wr BuildRequest(Connection& connection, const Operation& op, uint64_t wr_id,
                         std::vector<ibv_sge>* sges) {
  for (const Piece& piece : op.local) {
    sges->push_back({.addr = connection.arena().address(piece.offset),
                     .length = piece.length,
                     .lkey = connection.mr()->lkey});
  }
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = sges->data();
  wr.num_sge = static_cast<int>(sges->size());
  wr.opcode = RequestOpcode(op.verb);
  if (op.fence) wr.send_flags |= IBV_SEND_FENCE;
  if (op.use_inline) wr.send_flags |= IBV_SEND_INLINE;
  if (op.signaled) wr.send_flags |= IBV_SEND_SIGNALED;
  if (op.solicited) wr.send_flags |= IBV_SEND_SOLICITED;
  if (HasImmediate(op.verb)) wr.imm_data = htonl(op.immediate);
  const uint64_t remote = connection.remote_address(op.remote[0].offset);
  if (IsAtomic(op.verb)) {
    wr.wr.atomic.remote_addr = remote;
    wr.wr.atomic.rkey = connection.rkey();
    wr.wr.atomic.compare_add = op.compare_or_add;
    wr.wr.atomic.swap = op.swap;
  } else if (op.verb != Verb::kSend && op.verb != Verb::kSendImm) {
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = connection.rkey();
  }
  return wr;
}

void PostSend(ibv_qp* qp, ibv_send_wr* first) {
  ibv_send_wr* bad = nullptr;
  CheckCode(ibv_post_send(qp, first, &bad), "ibv_post_send");
}

void PostReceive(Connection& connection, uint32_t qp, const std::vector<Piece>& pieces,
                 uint64_t wr_id) {
  std::vector<ibv_sge> sges;
  for (const Piece& piece : pieces) {
    sges.push_back({.addr = connection.arena().address(piece.offset),
                    .length = piece.length,
                    .lkey = connection.mr()->lkey});
  }
  ibv_recv_wr wr{};
  wr.wr_id = wr_id;
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  ibv_recv_wr* bad = nullptr;
  CheckCode(ibv_post_recv(connection.qp(qp), &wr, &bad), "ibv_post_recv");
}

void RunTransfers(Session& session, Connection& connection,
                  const std::vector<Operation>& operations) {
  Runner(session, connection, operations).Run();
}

}  // namespace rocegw::interop
