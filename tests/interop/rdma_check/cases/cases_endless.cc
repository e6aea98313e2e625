// SPDX-License-Identifier: Apache-2.0
// Traffic in both directions until something ends it: for cases in which a side is killed. It says
// what it saw in a line `endless: ...`: the progress, then a disconnect or the status of the
// request that failed. Run only when asked for by name.
#include <sched.h>

#include <chrono>
#include <iostream>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/cm_channel.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/rdma_check/transfer.h"

namespace rocegw::interop {
namespace {

constexpr uint32_t kWindow = 16;
constexpr uint32_t kReport = 500;

void Endless(Session& session) {
  // Not 7, which rxe takes for endless.
  Connection connection(session, {.retry_count = 6});
  Plan plan(session.settings.seed);
  for (uint32_t i = 0; i < kWindow; ++i) {
    const Verb verb = i % 4 == 3 ? Verb::kRead : i % 2 == 0 ? Verb::kWrite : Verb::kSend;
    plan.Add(verb, session.is_client, 200 * i);
  }
  const std::vector<Operation>& operations = plan.operations();
  // Everything that arrives lands at one place; nobody looks at it.
  constexpr uint32_t kLargest = kWindow * 200;
  const Piece landing{.offset = Arena::kSize - kLargest, .length = kLargest};
  for (uint32_t i = 0; i < 2 * kWindow; ++i) PostReceive(connection, 0, {landing}, i);
  session.control.Sync("endless");

  const auto post = [&](uint64_t i) {
    std::vector<ibv_sge> sges;
    ibv_send_wr wr = BuildRequest(connection, operations[i], i, &sges);
    PostSend(connection.qp(0), &wr);
  };
  for (uint32_t i = 0; i < kWindow; ++i) post(i);
  for (uint64_t done = 0;;) {
    if (connection.DisconnectSeen()) {
      std::cout << "endless: disconnected" << std::endl;
      return;
    }
    for (const ibv_wc& wc : connection.receive().Poll(8)) {
      if (wc.status == IBV_WC_SUCCESS) PostReceive(connection, 0, {landing}, wc.wr_id);
    }
    for (const ibv_wc& wc : connection.send().Poll(8)) {
      // With rdma_cm the flush may be seen before the event that explains it.
      if (wc.status == IBV_WC_WR_FLUSH_ERR && session.settings.use_cm) continue;
      if (wc.status != IBV_WC_SUCCESS) {
        std::cout << "endless: " << ibv_wc_status_str(wc.status) << std::endl;
        return;
      }
      post(wc.wr_id);
      if (++done % kReport == 0) std::cout << "endless: " << done << " requests" << std::endl;
    }
    sched_yield();
  }
}

}  // namespace

std::vector<Case> EndlessCases() {
  return {{"endless.traffic", false, Needs::kAnything, [](Session& s, bool) { Endless(s); }}};
}

}  // namespace rocegw::interop
