// SPDX-License-Identifier: Apache-2.0
// Operations and their execution: a case builds the same list of operations on both sides;
// RunTransfers then plays the requester for its own operations and the responder for the peer's,
// and verifies completions (status, opcode, order, length, immediate) and the whole arena on both
// sides.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/interop/rdma_check/connection.h"

namespace rocegw::interop {

enum class Verb { kSend, kSendImm, kWrite, kWriteImm, kRead, kCompareSwap, kFetchAdd };

const char* Name(Verb verb);
inline bool TakesReceive(Verb verb) {
  return verb == Verb::kSend || verb == Verb::kSendImm || verb == Verb::kWriteImm;
}
inline bool HasImmediate(Verb verb) { return verb == Verb::kSendImm || verb == Verb::kWriteImm; }
inline bool IsAtomic(Verb verb) { return verb == Verb::kCompareSwap || verb == Verb::kFetchAdd; }

struct Operation {
  Verb verb = Verb::kSend;
  bool by_client = true;  // who requests
  uint32_t qp = 0;
  std::vector<Piece> local;   // in the requester's arena
  std::vector<Piece> remote;  // in the responder's arena; of a SEND: where its receive goes
  uint32_t length = 0;
  uint64_t seed = 0;  // of the payload
  uint32_t immediate = 0;
  bool fence = false;
  bool use_inline = false;
  bool signaled = true;
  bool solicited = false;
  // The payload is what an earlier READ of the list brought into `local`; nobody fills it in
  // before.
  bool chained = false;
  // Atomics: the word before, the operands.
  uint64_t before = 0;
  uint64_t compare_or_add = 0;
  uint64_t swap = 0;
};

// Builds operations with places in both arenas. Both sides must make the same calls in the same
// order.
class Plan {
 public:
  explicit Plan(uint64_t seed)
      : random_(seed), client_layout_(seed + 11), server_layout_(seed + 12) {}

  // local_pieces and remote_pieces: how many SGEs the data is spread over (remote: only for SENDs).
  Operation& Add(Verb verb, bool by_client, uint32_t length, uint32_t local_pieces = 1,
                 uint32_t remote_pieces = 1);
  Operation& AddAtomic(Verb verb, bool by_client, uint64_t before, uint64_t compare_or_add,
                       uint64_t swap = 0);
  uint64_t Random() { return random_(); }
  const std::vector<Operation>& operations() const { return operations_; }

 private:
  std::mt19937_64 random_;
  Layout client_layout_;
  Layout server_layout_;
  std::vector<Operation> operations_;
};

// Runs the list to its end on both sides, then compares memory.
void RunTransfers(Session& session, Connection& connection,
                  const std::vector<Operation>& operations);

// A filled-in work request for an operation; sges must outlive it.
ibv_send_wr BuildRequest(Connection& connection, const Operation& operation, uint64_t wr_id,
                         std::vector<ibv_sge>* sges);
void PostSend(ibv_qp* qp, ibv_send_wr* first);
void PostReceive(Connection& connection, uint32_t qp, const std::vector<Piece>& pieces,
                 uint64_t wr_id);

}  // namespace rocegw::interop
