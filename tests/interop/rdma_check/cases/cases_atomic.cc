// SPDX-License-Identifier: Apache-2.0
// COMPARE_SWAP and FETCH_ADD: results, returned values, and that concurrent ones do not lose each
// other.
#include <algorithm>
#include <array>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/rdma_check/transfer.h"

namespace rocegw::interop {
namespace {

constexpr std::array<uint64_t, 6> kWords = {
    0, 1, 0xFFFFFFFF, 1ULL << 63, ~uint64_t{0}, 0x0123456789ABCDEF};

void CompareSwap(Session& session, bool by_client) {
  Connection connection(session, {});
  Plan plan(session.settings.seed);
  for (const uint64_t word : kWords) {
    plan.AddAtomic(Verb::kCompareSwap, by_client, word, word, ~word);
    plan.AddAtomic(Verb::kCompareSwap, by_client, word, word ^ 1, ~word);
    plan.AddAtomic(Verb::kCompareSwap, by_client, word, word ^ (1ULL << 63), ~word);
  }
  RunTransfers(session, connection, plan.operations());
  connection.Close(session);
}

void FetchAdd(Session& session, bool by_client) {
  Connection connection(session, {});
  Plan plan(session.settings.seed);
  for (const uint64_t word : kWords) {
    for (const uint64_t add : kWords) plan.AddAtomic(Verb::kFetchAdd, by_client, word, add);
  }
  RunTransfers(session, connection, plan.operations());
  connection.Close(session);
}

// Every queue pair adds 1 to the same word: each value between must be returned exactly once.
void Contention(Session& session, bool by_client) {
  constexpr uint32_t kPerQp = 48;
  constexpr uint64_t kStart = 0xFFFFFFF0;
  const uint32_t qps = session.settings.qps;
  Connection connection(session, {.qps = qps});
  Arena& arena = connection.arena();
  const bool requester = session.is_client == by_client;
  Layout layout(session.settings.seed);
  const Piece target = layout.Take(8, 8);
  std::vector<Piece> results;
  for (uint32_t i = 0; i < qps * kPerQp; ++i) results.push_back(layout.Take(8, 8));
  if (!requester) arena.SetWord(target.offset, kStart);
  session.control.Sync("prepared");
  if (requester) {
    for (uint32_t i = 0; i < results.size(); ++i) {
      Operation op;
      op.verb = Verb::kFetchAdd;
      op.local = {results[i]};
      op.remote = {target};
      op.compare_or_add = 1;
      std::vector<ibv_sge> sges;
      ibv_send_wr wr = BuildRequest(connection, op, i, &sges);
      PostSend(connection.qp(i % qps), &wr);
    }
    for (size_t done = 0; done < results.size();) {
      for (const ibv_wc& wc : connection.send().Wait(16, "FETCH_ADDs")) {
        Check(wc.status == IBV_WC_SUCCESS, "FETCH_ADD: ", ibv_wc_status_str(wc.status));
        ++done;
      }
    }
    std::vector<uint64_t> values;
    for (const Piece& result : results) {
      values.push_back(arena.word(result.offset));
      arena.Accept(result);
    }
    std::sort(values.begin(), values.end());
    for (size_t i = 0; i < values.size(); ++i) {
      Check(values[i] == kStart + i, "value ", kStart + i, " was not returned once; found ",
            values[i]);
    }
  }
  session.control.Sync("completed");
  if (!requester) arena.ExpectWord(target.offset, kStart + results.size());
  arena.Verify("after concurrent FETCH_ADDs");
  connection.Close(session);
}

}  // namespace

std::vector<Case> AtomicCases() {
  return {{"atomic.compare_swap", true, Needs::kAnything, CompareSwap},
          {"atomic.fetch_add", true, Needs::kAnything, FetchAdd},
          {"atomic.contention", true, Needs::kAnything, Contention}};
}

}  // namespace rocegw::interop
