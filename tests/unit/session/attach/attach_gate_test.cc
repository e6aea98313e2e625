// SPDX-License-Identifier: Apache-2.0
// Attaches that wait for the agent's verdict: the list with virtual time, then the gate with real
// connections.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/session/attach/held_attaches.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

using session::HeldAttach;
using session::HeldAttaches;
using session::HeldRow;
using Rows = std::vector<HeldRow>;

constexpr char kAskedPool[] = "tenants/t/pools/p";
constexpr TimePoint kBegin{Seconds(100).ns};

class HeldList : public ::testing::Test {
 protected:
  uint64_t Add(TimePoint now, uint64_t pool_id = 1, bool greeted = true) {
    HeldAttach attach;
    attach.pool = kAskedPool;
    attach.pool_id = pool_id;
    attach.peer.comm = "program";
    attach.greeted = greeted;
    return held.Add(std::move(attach), now);
  }
  uint64_t AddTo(const std::string& pool, uid_t uid) {
    HeldAttach attach;
    attach.pool = pool;
    attach.peer.uid = uid;
    attach.greeted = true;
    return held.Add(std::move(attach), kBegin);
  }
  void Ask(uint64_t after, Duration wait, TimePoint now = kBegin) {
    told.reset();
    held.Tell(
        after, now + wait, [this](const Rows& rows) { told = rows; }, now);
  }

  HeldAttaches held{1000, Seconds(5)};
  std::optional<Rows> told;
};

TEST_F(HeldList, TimeOver_ExactlyThoseWhoseItIs) {
  EXPECT_EQ(held.deadline(), kNever);
  const uint64_t first = Add(kBegin);
  const uint64_t second = Add(kBegin + Seconds(1));
  EXPECT_EQ(first, 1000u);
  EXPECT_EQ(second, 1001u);
  EXPECT_EQ(held.deadline(), kBegin + Seconds(5));
  EXPECT_TRUE(held.TakeExpired(kBegin + Seconds(5) - Nanoseconds(1)).empty());
  EXPECT_EQ(held.TakeExpired(kBegin + Seconds(5)).size(), 1u);
  EXPECT_FALSE(held.Take(first).has_value()) << "too late";
  EXPECT_TRUE(held.Take(second).has_value());
  EXPECT_FALSE(held.Take(second).has_value()) << "once";
  EXPECT_EQ(held.deadline(), kNever);
}

TEST_F(HeldList, WhoAsks_IsToldAtOnceOfWhatIsNewToIt) {
  Add(kBegin);
  Ask(0, Seconds(10));
  ASSERT_TRUE(told.has_value());
  ASSERT_EQ(told->size(), 1u);
  EXPECT_EQ(told->at(0).id, 1000u);
  EXPECT_EQ(told->at(0).pool, kAskedPool);
  Ask(1000, Seconds(10));
  EXPECT_FALSE(told.has_value()) << "knows it already";
  Add(kBegin + Seconds(1));
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->size(), 2u) << "all that are held";
}

TEST_F(HeldList, WhoDoesNotGreet_IsNotToldOf) {
  Ask(0, Seconds(10));
  const uint64_t silent = Add(kBegin, 1, false);
  EXPECT_FALSE(told.has_value());
  const uint64_t second = Add(kBegin + Seconds(1));
  ASSERT_TRUE(told.has_value());
  ASSERT_EQ(told->size(), 1u);
  EXPECT_EQ(told->at(0).id, second);
  // The client greets after a later one was reported, and is not overlooked.
  Ask(second, Seconds(10));
  EXPECT_FALSE(told.has_value());
  const uint64_t now_known_as = held.Greeted(silent);
  EXPECT_GT(now_known_as, second);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->back().id, now_known_as);
  EXPECT_EQ(held.Find(silent), nullptr);
  EXPECT_EQ(held.deadline(), kBegin + Seconds(5)) << "as before";
  EXPECT_EQ(held.TakeExpired(kBegin + Seconds(5)).size(), 1u);
}

// The daemon before this one began with larger ids, since the wall clock was ahead.
TEST_F(HeldList, WhoKnowsIdsOfAnEarlierDaemon_IsToldOfAll) {
  Add(kBegin);
  Ask(5000, Seconds(10));
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->size(), 1u);
  held.Take(1000);
  Ask(5000, Seconds(10));
  EXPECT_FALSE(told.has_value());
  Add(kBegin);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->at(0).id, 1001u);
}

TEST_F(HeldList, WhoWaitsInVain_IsToldOfNothing) {
  Ask(0, Seconds(3));
  held.TellExpired(kBegin + Seconds(2));
  EXPECT_FALSE(told.has_value());
  EXPECT_EQ(held.deadline(), kBegin + Seconds(3));
  held.TellExpired(kBegin + Seconds(3));
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->empty());
  Ask(0, Seconds(3));
  held.StopTelling();
  ASSERT_TRUE(told.has_value());
  Ask(0, Seconds(3));
  EXPECT_TRUE(told.has_value()) << "and from now on";
}

TEST_F(HeldList, WithinTheBound_NoneMakesRoom) {
  for (size_t i = 0; i < HeldAttaches::kMost; ++i) Add(kBegin);
  EXPECT_EQ(held.Excess(), 0u);
}

TEST_F(HeldList, PoolsOfOneTenant_LeaveRoomToOtherTenants) {
  const uint64_t victim = AddTo("tenants/v/pools/p", 1000);
  for (size_t i = 1; i < HeldAttaches::kMost; ++i)
    AddTo("tenants/t/pools/p" + std::to_string(i), 1000);
  for (int i = 0; i < 300; ++i) {
    const uint64_t late = AddTo("tenants/w/pools/p", 1000);
    const uint64_t excess = held.Excess();
    ASSERT_NE(excess, 0u);
    ASSERT_NE(excess, victim);
    ASSERT_NE(excess, late);
    ASSERT_EQ(held.Find(excess)->pool.find("tenants/t/"), 0u);
    ASSERT_TRUE(held.Take(excess).has_value());
    ASSERT_TRUE(held.Take(late).has_value());
    AddTo("tenants/t/pools/p0", 1000);
  }
}

TEST_F(HeldList, OnePool_LeavesRoomToOthersOfItsTenant) {
  const uint64_t victim = AddTo("tenants/t/pools/v", 1000);
  for (size_t i = 0; i < HeldAttaches::kMost; ++i) AddTo(kAskedPool, 1000);
  EXPECT_NE(held.Excess(), victim);
  EXPECT_EQ(held.Find(held.Excess())->pool, kAskedPool);
}

TEST_F(HeldList, OneUser_LeavesRoomToOthersOfThePool) {
  const uint64_t victim = AddTo(kAskedPool, 1000);
  const uint64_t oldest = AddTo(kAskedPool, 1001);
  for (size_t i = 1; i < HeldAttaches::kMost; ++i) AddTo(kAskedPool, 1001);
  EXPECT_NE(held.Excess(), victim);
  EXPECT_EQ(held.Excess(), oldest);
}

TEST_F(HeldList, AttachThatHasNotGreeted_MakesRoomFirst) {
  for (size_t i = 0; i < HeldAttaches::kMost; ++i) Add(kBegin);
  const uint64_t silent = Add(kBegin, 1, false);
  EXPECT_EQ(held.Excess(), silent);
}

TEST_F(HeldList, TooManyCalls_TheOldestIsAnswered) {
  std::vector<int> answered(HeldAttaches::kMostWaiters + 1);
  for (int& count : answered) {
    held.Tell(
        UINT64_MAX, kBegin + Seconds(9), [&count](const Rows&) { ++count; }, kBegin);
  }
  EXPECT_EQ(answered.front(), 1);
  EXPECT_EQ(answered.back(), 0);
}

class Gate : public ::testing::Test {
 protected:
  Gate() { Make({}); }
  void Make(session::Options options) {
    host = std::make_unique<SessionHost>(1, std::move(options));
    tenant::TenantSettings tenant;
    tenant.name = "tenants/t";
    host->server->SetTenant(tenant);
    for (const char* name : {kAskedPool, "tenants/t/pools/open"}) {
      tenant::PoolSettings settings;
      settings.name = name;
      settings.trusted = true;
      settings.identity_required = name == std::string(kAskedPool);
      host->server->SetPool(settings, {});
    }
  }
  std::unique_ptr<TestClient> Knock(const std::string& pool = kAskedPool) {
    auto client = std::make_unique<TestClient>(*host, pool);
    auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
    hello.magic = ROCEGW_ABI_MAGIC;
    hello.major = ROCEGW_ABI_MAJOR;
    client->Send(hello);
    host->Settle();
    return client;
  }
  Rows Held() {
    Rows held;
    host->server->gate().List(0, {}, [&](const Rows& rows) { held = rows; });
    return held;
  }
  bool Answer(uint64_t id, bool allowed, const std::string& reason = "",
              const tenant::SlotLimits& limits = {}) {
    const bool known = host->server->gate().Answer(id, allowed, reason, limits);
    host->Settle();
    return known;
  }
  // Returns the errno of the greeting's answer; -1: none yet.
  int Greeting(TestClient& client) {
    host->Settle();
    const auto answer = client.Receive();
    return answer ? answer->header().error : -1;
  }
  uint64_t Refused(const std::string& pool = kAskedPool) {
    return host->server->services().pools.FindPool(pool)->identities_refused();
  }
  tenant::AttachCounts Outcomes(const std::string& pool = kAskedPool) {
    return host->server->services().pools.FindPool(pool)->attaches();
  }
  std::string LastEvent() {
    const auto rows = host->server->services().events.Rows();
    return rows.empty() || rows[0].reason != "IDENTITY_DENIED" ? "" : rows[0].text;
  }

  std::unique_ptr<SessionHost> host;
};

TEST(Cgroup, IsWhereTheContainerShows_InEitherVersion) {
  EXPECT_EQ(session::CgroupIn("0::/kubepods.slice/x.scope\n"), "/kubepods.slice/x.scope");
  EXPECT_EQ(session::CgroupIn("0::/\n"), "/");
  EXPECT_EQ(session::CgroupIn("2:pids:/kubepods/podX/1\n1:name=systemd:/a:b\n0::/system.slice\n"),
            "/system.slice")
      << "both versions, and the process is in the tree of version 2";
  EXPECT_EQ(session::CgroupIn("3:cpuset:/\n2:pids:/kubepods/podX/1\n0::/\n"), "/kubepods/podX/1");
  EXPECT_EQ(session::CgroupIn("2:cpu,cpuacct:/kubepods/podX/1\n1:name=systemd:/a\n"),
            "/kubepods/podX/1")
      << "version 1 alone";
  EXPECT_EQ(session::CgroupIn("1:name=systemd:/a:b\n"), "/a:b");
  EXPECT_EQ(session::CgroupIn(""), "");
}

TEST_F(Gate, Allowed_GoesOnWhereItStood) {
  auto client = Knock();
  EXPECT_EQ(Greeting(*client), -1);
  EXPECT_EQ(host->server->session_count(), 0u);
  const Rows held = Held();
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].pool, kAskedPool);
  EXPECT_EQ(held[0].pid, ::getpid());
  EXPECT_EQ(held[0].uid, ::geteuid());
  EXPECT_NE(held[0].start_time, 0u);
  EXPECT_EQ(held[0].cgroup, session::ProcessCgroup(::getpid()));
  EXPECT_TRUE(Answer(held[0].id, true));
  EXPECT_EQ(Greeting(*client), 0);
  EXPECT_EQ(host->server->session_count(), 1u);
  EXPECT_FALSE(Answer(held[0].id, true)) << "once";
  EXPECT_EQ(Refused(), 0u);
}

// Attaches with the limits of a claim, and creates as many queue pairs as it gets, at most `most`.
class ClaimedSlot : public Gate {
 protected:
  struct Program {
    std::unique_ptr<TestClient> client;
    uint32_t pd = 0;
    uint32_t cq = 0;
  };
  Program Attach(const std::string& path, const tenant::SlotLimits& limits) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    host->server->Attach(UniqueFd(ends[0]), kAskedPool, path);
    Program program{std::make_unique<TestClient>(*host, UniqueFd(ends[1]))};
    auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
    hello.magic = ROCEGW_ABI_MAGIC;
    hello.major = ROCEGW_ABI_MAJOR;
    hello.minor = ROCEGW_ABI_MINOR;
    program.client->Send(hello);
    host->Settle();
    EXPECT_TRUE(Answer(Held().at(0).id, true, "", limits));
    EXPECT_EQ(Greeting(*program.client), 0);
    const uint32_t context = program.client->OpenContext();
    program.pd = program.client->AllocPd(context);
    program.cq = program.client->CreateCq(context, 64).handle;
    EXPECT_NE(program.cq, 0u);
    return program;
  }
  static uint32_t Create(Program& program, uint32_t most) {
    uint32_t created = 0;
    while (created < most) {
      (void)program.client->CreateQp(program.pd, program.cq);
      if (program.client->error() != 0) break;
      ++created;
    }
    return created;
  }
  static uint32_t MaxQp(Program& program) {
    return program.client
        ->Call<rocegw_device_reply>(
            TestClient::Request<rocegw_query_device>(ROCEGW_MSG_QUERY_DEVICE))
        .max_qp;
  }
};

TEST_F(ClaimedSlot, QueuePairs_AreLimitedForAllProgramsOfTheSocketTogether) {
  Program first = Attach("/a/0", {.qps = 3});
  Program second = Attach("/a/0", {.qps = 3});
  Program other = Attach("/a/1", {.qps = 2});
  Program free = Attach("/a/2", {});
  EXPECT_EQ(MaxQp(first), 3u);
  EXPECT_EQ(Create(first, 2), 2u);
  EXPECT_EQ(Create(second, 9), 1u);
  EXPECT_EQ(second.client->error(), ENOMEM);
  EXPECT_TRUE(host->Told("limit of qps reached, which is 3 for the slot, by the claim of its pod"));
  EXPECT_EQ(Create(other, 9), 2u);
  EXPECT_EQ(Create(free, 9), 9u) << "the pool has no limit";
  // Queue pairs of an ended program are free for the others of its claim.
  first.client.reset();
  host->Settle();
  EXPECT_EQ(Create(second, 9), 2u);
}

TEST_F(ClaimedSlot, OtherLimits_AreAnotherClaims) {
  Program first = Attach("/a/0", {.qps = 1});
  EXPECT_EQ(Create(first, 9), 1u);
  EXPECT_EQ(host->server->ClearSocket("/a/0"), 1u);
  host->Settle();
  Program next = Attach("/a/0", {.qps = 2});
  EXPECT_EQ(Create(next, 9), 2u);
}

TEST_F(ClaimedSlot, Bandwidth_IsARateOfItsSessionsAtEachWorker) {
  Program first = Attach("/a/0", {.bytes_per_second = 1'000'000});
  Program second = Attach("/a/0", {.bytes_per_second = 1'000'000});
  Program free = Attach("/a/1", {});
  EXPECT_EQ(Create(first, 1) + Create(second, 1) + Create(free, 1), 3u);
  std::vector<std::shared_ptr<tenant::SlotShare>> slots;
  host->server->attach().ForEach(
      [&](const session::ClientSession& session) { slots.push_back(session.slot()); });
  ASSERT_EQ(slots.size(), 3u);
  std::ranges::sort(slots);
  EXPECT_EQ(slots[0], nullptr);
  EXPECT_EQ(slots[1], slots[2]) << "programs of a claim share its rate";
  EXPECT_EQ(slots[1]->bytes.limit(), 1'000'000u);
}

TEST_F(Gate, Denied_TheProgramIsToldWhy) {
  auto client = Knock();
  EXPECT_TRUE(Answer(Held().at(0).id, false, std::string(400, 'x')));
  host->Settle();
  const auto answer = client->Receive();
  ASSERT_TRUE(answer.has_value());
  rocegw_refusal refusal;
  ASSERT_EQ(answer->bytes.size(), sizeof refusal);
  std::memcpy(&refusal, answer->bytes.data(), sizeof refusal);
  EXPECT_EQ(refusal.header.error, EACCES);
  EXPECT_EQ(refusal.header.length, sizeof refusal);
  EXPECT_EQ(std::string(refusal.reason), std::string(sizeof refusal.reason - 1, 'x'));
}

TEST_F(Gate, Cleared_NobodyOfTheSocketIsLeft) {
  const auto attach = [&](const std::string& path) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    host->server->Attach(UniqueFd(ends[0]), kAskedPool, path);
    auto hello = TestClient::Request<rocegw_hello>(ROCEGW_MSG_HELLO);
    hello.magic = ROCEGW_ABI_MAGIC;
    hello.major = ROCEGW_ABI_MAJOR;
    EXPECT_EQ(::send(ends[1], &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
    host->Settle();
    return UniqueFd(ends[1]);
  };
  const auto is_closed = [&](const UniqueFd& end) {
    host->Settle();
    char message[4096];
    ssize_t got = 0;
    while ((got = ::recv(end.get(), message, sizeof message, MSG_DONTWAIT)) > 0) {
    }
    return got == 0;
  };
  const UniqueFd mine = attach("/a/0");
  const UniqueFd theirs = attach("/a/1");
  for (const HeldRow& row : Held()) EXPECT_TRUE(Answer(row.id, true));
  const UniqueFd waiting = attach("/a/0");
  EXPECT_EQ(host->server->session_count(), 2u);
  EXPECT_EQ(host->server->ClearSocket("/a/0"), 1u);
  EXPECT_TRUE(is_closed(mine));
  EXPECT_TRUE(is_closed(waiting));
  EXPECT_FALSE(is_closed(theirs));
  EXPECT_EQ(host->server->ClearSocket("/a/0"), 0u);
  EXPECT_EQ(host->server->session_count(), 1u);
}

TEST_F(Gate, Denied_ErrnoCounterAndEventNameThePool) {
  auto client = Knock();
  EXPECT_TRUE(Answer(Held().at(0).id, false, "uid 7 may not"));
  EXPECT_EQ(Greeting(*client), EACCES);
  EXPECT_TRUE(client->closed());
  EXPECT_EQ(Refused(), 1u);
  EXPECT_NE(LastEvent().find(std::string(kAskedPool) + ": attach of "), std::string::npos);
  EXPECT_NE(LastEvent().find("refused: uid 7 may not"), std::string::npos);
  auto other = Knock("tenants/t/pools/open");
  EXPECT_EQ(Greeting(*other), 0) << "another pool asks nobody";
}

TEST_F(Gate, TooManyOfOneUser_TheOneThatHasNotGreetedIsRefused) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (size_t i = 0; i <= HeldAttaches::kMost; ++i) clients.push_back(Knock());
  EXPECT_EQ(Greeting(*clients.front()), -1);
  EXPECT_EQ(Greeting(*clients.back()), EACCES);
  EXPECT_TRUE(clients.back()->closed());
  EXPECT_EQ(Held().size(), HeldAttaches::kMost);
  EXPECT_EQ(Refused(), 1u);
  EXPECT_EQ(Outcomes(), (tenant::AttachCounts{0, 0, 1}));
}

TEST_F(Gate, NobodyAnswers_DeniedWhenItsTimeIsOver) {
  session::Options options;
  options.verdict_within = Milliseconds(3);
  Make(options);
  auto client = Knock();
  while (Refused() == 0) host->RunControl();
  EXPECT_EQ(Greeting(*client), EACCES);
  EXPECT_NE(LastEvent().find("no verdict"), std::string::npos);
  EXPECT_EQ(Outcomes(), (tenant::AttachCounts{0, 0, 1}));
  EXPECT_TRUE(Held().empty());
}

TEST_F(Gate, ClientGoesMeanwhile_IsForgotten) {
  auto client = Knock();
  const uint64_t id = Held().at(0).id;
  client->Disconnect();
  host->Settle();
  EXPECT_TRUE(Held().empty());
  EXPECT_FALSE(Answer(id, true));
  EXPECT_EQ(Refused(), 0u);
  EXPECT_EQ(host->server->session_count(), 0u);
}

TEST_F(Gate, NobodyGreets_NobodyIsAskedAbout) {
  session::Options options;
  options.verdict_within = Milliseconds(3);
  Make(options);
  TestClient silent(*host, kAskedPool);
  { const TestClient looks(*host, kAskedPool); }
  host->Settle();
  EXPECT_TRUE(Held().empty());
  while (host->server->gate().size() != 0) host->RunControl();
  EXPECT_EQ(Greeting(silent), EACCES);
  EXPECT_EQ(Refused(), 0u) << "it was not about identity";
}

TEST_F(Gate, Several_EachHasItsOwnAnswer) {
  auto a = Knock();
  auto b = Knock();
  auto c = Knock();
  const Rows held = Held();
  ASSERT_EQ(held.size(), 3u);
  EXPECT_TRUE(Answer(held[1].id, false));
  EXPECT_TRUE(Answer(held[2].id, true));
  EXPECT_EQ(Greeting(*a), -1);
  EXPECT_EQ(Greeting(*b), EACCES);
  EXPECT_EQ(Greeting(*c), 0);
  EXPECT_TRUE(Answer(held[0].id, true));
  EXPECT_EQ(Greeting(*a), 0);
  EXPECT_EQ(Outcomes(), (tenant::AttachCounts{2, 1, 0}));
}

TEST_F(Gate, PoolGoesMeanwhile_Denied) {
  auto client = Knock();
  const uint64_t id = Held().at(0).id;
  host->server->RemovePool(kAskedPool);
  EXPECT_TRUE(Answer(id, true));
  EXPECT_EQ(Greeting(*client), EACCES);
}

TEST_F(Gate, Allowed_TheOtherLimitsHold) {
  tenant::PoolSettings settings;
  settings.name = kAskedPool;
  settings.identity_required = true;
  settings.quota.peak[session::Resource::kSessions] = 0;
  host->server->SetPool(settings, {});
  auto client = Knock();
  EXPECT_TRUE(Answer(Held().at(0).id, true));
  EXPECT_EQ(Greeting(*client), ENOMEM);
  EXPECT_EQ(Outcomes(), (tenant::AttachCounts{0, 1, 0}));
}

TEST_F(Gate, Shutdown_LetsGoOfAll) {
  auto client = Knock();
  host.reset();
  EXPECT_TRUE(client->closed());
}

}  // namespace
}  // namespace rocegw::testing
