// SPDX-License-Identifier: Apache-2.0
// Data in every shape: sizes around packet boundaries, scattered buffers, inline, unsignaled,
// fenced, mixed.
#include <array>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/rdma_check/transfer.h"

namespace rocegw::interop {
namespace {

constexpr std::array kDataVerbs = {Verb::kSend, Verb::kSendImm, Verb::kWrite, Verb::kWriteImm,
                                   Verb::kRead};

void Sizes(Session& session, Verb verb, bool by_client) {
  Connection connection(session, {});
  const uint32_t mtu = connection.path_mtu();
  Plan plan(session.settings.seed);
  for (const uint32_t size : {0U, 1U, 2U, 3U, 8U, 64U, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1,
                              3 * mtu - 3, 4 * mtu + 7, 65536U, 65537U, 1048576U}) {
    plan.Add(verb, by_client, size);
  }
  RunTransfers(session, connection, plan.operations());
  connection.Close(session, by_client);
}

void Scatter(Session& session, Verb verb, bool by_client) {
  Connection connection(session, {});
  const uint32_t mtu = connection.path_mtu();
  Plan plan(session.settings.seed + 1);
  for (uint32_t i = 0; i < 24; ++i) {
    const uint32_t length = static_cast<uint32_t>(plan.Random() % (3 * mtu));
    plan.Add(verb, by_client, length, 1 + i % 4, 1 + (i / 4) % 4);
  }
  RunTransfers(session, connection, plan.operations());
  connection.Close(session);
}

void Inline(Session& session, Verb verb, bool by_client) {
  Connection connection(session, {.inline_bytes = 64});
  Check(connection.inline_bytes() >= 64, "64 bytes of inline data asked for, got ",
        connection.inline_bytes());
  Plan plan(session.settings.seed + 2);
  for (const uint32_t size : {0U, 1U, 2U, 3U, 4U, 7U, 8U, 9U, 16U, 31U, 32U, 33U, 63U, 64U}) {
    plan.Add(verb, by_client, size).use_inline = true;
    plan.Add(verb, by_client, size, 3).use_inline = true;
  }
  RunTransfers(session, connection, plan.operations());
  connection.Close(session);
}

void Unsignaled(Session& session, bool by_client) {
  Connection connection(session, {});
  for (uint32_t round = 0; round < 4; ++round) {
    Plan plan(session.settings.seed + round);
    for (uint32_t i = 1; i <= 64; ++i) {
      const Verb verb = i % 2 == 0 ? Verb::kWrite : Verb::kSend;
      plan.Add(verb, by_client, 200 + i).signaled = i % 16 == 0;
    }
    RunTransfers(session, connection, plan.operations());
  }
  connection.Close(session);
}

void SignalAll(Session& session, bool by_client) {
  Connection connection(session, {.signal_all = true});
  Plan plan(session.settings.seed);
  // The flag is off, so completions can only come from the queue pair's own setting; the model
  // wants one each.
  for (uint32_t i = 0; i < 32; ++i) plan.Add(Verb::kWrite, by_client, 100 + i);
  std::vector<Operation> operations = plan.operations();
  RunTransfers(session, connection, operations);
  connection.Close(session);
}

// What a fence is for: a SEND whose payload an earlier READ brings in.
void Fence(Session& session, bool by_client) {
  Connection connection(session, {});
  const uint32_t mtu = connection.path_mtu();
  Plan plan(session.settings.seed + 3);
  for (uint32_t i = 0; i < 12; ++i) {
    const Operation read = plan.Add(Verb::kRead, by_client, 2 * mtu + i);
    Operation& next =
        plan.Add(i % 2 == 0 ? Verb::kSend : Verb::kWrite, by_client, read.length, 1, 2);
    next.local = read.local;
    next.seed = read.seed;
    next.chained = true;
    next.fence = true;
  }
  RunTransfers(session, connection, plan.operations());
  connection.Close(session);
}

void AddMixed(Plan* plan, bool by_client, uint32_t qp, uint32_t mtu) {
  const uint64_t dice = plan->Random();
  const auto verb = static_cast<Verb>(dice % 7);
  if (IsAtomic(verb)) {
    const uint64_t before = plan->Random();
    const uint64_t compare = dice & 0x100 ? before : plan->Random();
    plan->AddAtomic(verb, by_client, before, compare, plan->Random()).qp = qp;
    return;
  }
  // Mostly small, sometimes many packets.
  const uint32_t bound = (dice >> 16) % 8 == 0 ? 6 * mtu : mtu / 2;
  const uint32_t length = static_cast<uint32_t>(plan->Random() % bound);
  Operation& op = plan->Add(verb, by_client, length, 1 + (dice >> 24) % 4, 1 + (dice >> 28) % 4);
  op.qp = qp;
  op.fence = (dice >> 32) % 8 == 0;
  op.solicited = (dice >> 36) % 4 == 0;
}

void Mixed(Session& session, bool by_client) {
  Connection connection(session, {});
  for (uint32_t round = 0; round < 6; ++round) {
    Plan plan(session.settings.seed * 100 + round);
    for (uint32_t i = 0; i < 60; ++i) AddMixed(&plan, by_client, 0, connection.path_mtu());
    RunTransfers(session, connection, plan.operations());
  }
  connection.Close(session);
}

// Both sides request on the same queue pairs at the same time.
void MixedBothWays(Session& session) {
  Connection connection(session, {.qps = session.settings.qps});
  for (uint32_t round = 0; round < 6; ++round) {
    Plan plan(session.settings.seed * 200 + round);
    for (uint32_t i = 0; i < 80; ++i) {
      AddMixed(&plan, i % 2 == 0, static_cast<uint32_t>(plan.Random() % connection.qps()),
               connection.path_mtu());
    }
    RunTransfers(session, connection, plan.operations());
  }
  connection.Close(session);
}

void ManyQueuePairs(Session& session, bool by_client) {
  Connection connection(session, {.qps = session.settings.qps * 2});
  for (uint32_t round = 0; round < 4; ++round) {
    Plan plan(session.settings.seed * 300 + round);
    for (uint32_t i = 0; i < 96; ++i) {
      AddMixed(&plan, by_client, i % connection.qps(), connection.path_mtu());
    }
    RunTransfers(session, connection, plan.operations());
  }
  connection.Close(session);
}

// A receiver that asks for solicited events only sleeps through other SENDs.
void Solicited(Session& session, bool by_client) {
  Connection connection(session, {.force_events = true});
  const bool requester = session.is_client == by_client;
  Plan plan(session.settings.seed + 4);
  for (uint32_t i = 0; i < 3; ++i) plan.Add(Verb::kSend, by_client, 50 + i);
  plan.Add(Verb::kSend, by_client, 60).solicited = true;
  const std::vector<Operation>& operations = plan.operations();
  Arena& arena = connection.arena();
  for (uint32_t i = 0; i < operations.size(); ++i) {
    if (requester) {
      arena.Fill(operations[i].local, operations[i].seed);
    } else {
      arena.Expect(operations[i].remote, operations[i].seed, operations[i].length);
      PostReceive(connection, 0, operations[i].remote, i);
    }
  }
  if (!requester) connection.receive().Arm(true);
  session.control.Sync("armed");
  for (uint32_t i = 0; i < operations.size(); ++i) {
    if (requester) {
      std::vector<ibv_sge> sges;
      ibv_send_wr wr = BuildRequest(connection, operations[i], i, &sges);
      PostSend(connection.qp(0), &wr);
      const ibv_wc wc = connection.send().WaitOne("SEND");
      Check(wc.status == IBV_WC_SUCCESS, "SEND: ", ibv_wc_status_str(wc.status));
    }
    session.control.Sync("sent");
    if (!requester && i == 2) {
      Check(!connection.receive().EventWithin(std::chrono::milliseconds(100)),
            "an event for SENDs that were not solicited");
    }
    if (!requester && i == 3) {
      Check(connection.receive().EventWithin(kCompletionTimeout), "no event for a solicited SEND");
    }
    session.control.Sync("looked");
  }
  if (!requester) {
    size_t taken = 0;
    while (taken < operations.size()) taken += connection.receive().Wait(4, "receives").size();
  }
  arena.Verify("after solicited SENDs");
  connection.Close(session);
}

}  // namespace

std::vector<Case> TransferCases() {
  std::vector<Case> cases;
  const auto add = [&cases](const std::string& name, auto function) {
    cases.push_back({"transfer." + name, true, Needs::kAnything, function});
  };
  for (const Verb verb : kDataVerbs) {
    const std::string name = Name(verb);
    add(name + ".sizes", [verb](Session& s, bool c) { Sizes(s, verb, c); });
    add(name + ".scatter", [verb](Session& s, bool c) { Scatter(s, verb, c); });
    if (verb != Verb::kRead) {
      add(name + ".inline", [verb](Session& s, bool c) { Inline(s, verb, c); });
    }
  }
  add("unsignaled", Unsignaled);
  add("signal_all", SignalAll);
  add("fence", Fence);
  add("mixed", Mixed);
  add("many_qps", ManyQueuePairs);
  add("solicited", Solicited);
  cases.push_back(
      {"transfer.both_ways", false, Needs::kAnything, [](Session& s, bool) { MixedBothWays(s); }});
  return cases;
}

}  // namespace rocegw::interop
