// SPDX-License-Identifier: Apache-2.0
// A real daemon with two pools, and ordinary programs that use up each quota of one: errno, event,
// counter, and that the other pool does not notice. Needs root.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <future>

#include "tests/e2e/pools/pools_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(PoolsE2e, EveryLimit_ErrnoEventCounterAndTheOtherPoolGoesOn) {
  struct Case {
    const char* limit;
    const char* arguments;
    const char* printed;
    const char* peak;
  };
  // How many rings fit shared memory is not our matter here, only that it ends.
  const Case cases[] = {
      {"pds", "pds", "3 Cannot allocate memory", "3"},
      {"cqs", "cqs", "4 Cannot allocate memory", "4"},
      {"qps", "qps", "5 Cannot allocate memory", "5"},
      {"srqs", "srqs", "2 Cannot allocate memory", "2"},
      {"mrs", "mrs", "6 Cannot allocate memory", "6"},
      {"ahs", "ahs", "3 Cannot allocate memory", "3"},
      {"registered_bytes", "registered_bytes", "4 Cannot allocate memory", "32768"},
      {"segment_bytes", "segment_bytes", "", "16777216"},
      {"cm_ids", "cm_ids", "7 Cannot allocate memory", "7"},
      {"listeners", "listeners", "2 Cannot allocate memory", "2"},
      {"connects_per_second", "connects 10.9.0.9", "3 Resource temporarily unavailable", "3"},
  };
  for (const Case& each : cases) {
    const std::string limit = each.limit;
    const std::string printed = Probe("red", each.arguments);
    if (each.printed[0] != '\0') {
      EXPECT_EQ(printed, each.printed) << limit;
    } else {
      EXPECT_TRUE(printed.ends_with("Cannot allocate memory")) << limit << ": " << printed;
    }
    EXPECT_EQ(EventOf("tenants/red/pools/small", limit), "tenants/red/pools/small: limit of " +
                                                             limit + " reached, which is " +
                                                             each.peak + " for the pool");
    EXPECT_GE(Refused("tenants/red/pools/small", limit), 1u) << limit;
    EXPECT_EQ(Refused("tenants/blue/pools/big", limit), 0u) << limit;
    // A thread of its own writes the log.
    EXPECT_TRUE(daemon_->Logs("limit of " + limit)) << limit;
  }
  // Where nobody waits for the answer the refusal is an event.
  const std::string by_event = Probe("red", "connects_with_qps 10.9.0.9");
  EXPECT_TRUE(by_event.ends_with("Resource temporarily unavailable")) << by_event;
  // The other pool has its own numbers, and got none of the refusals.
  EXPECT_EQ(Probe("blue", "qps"), "50 Cannot allocate memory");
  EXPECT_EQ(Probe("blue", "pds"), "50 Cannot allocate memory");
}

TEST_F(PoolsE2e, Sessions_TheThirdProgramIsRefused) {
  const NetworkNamespace::Inside inside(*space_);
  // A program stays until its input ends.
  ASSERT_EQ(mkfifo(File("input").c_str(), 0600), 0);
  UniqueFd input(open(File("input").c_str(), O_RDWR | O_CLOEXEC));
  std::vector<FILE*> programs;
  std::vector<std::string> answers;
  for (int i = 0; i < 3; ++i) {
    programs.push_back(popen((Command("red", "attach hold") + " <" + File("input")).c_str(), "re"));
    char line[256] = "";
    ASSERT_NE(std::fgets(line, sizeof line, programs.back()), nullptr);
    answers.emplace_back(line);
  }
  EXPECT_EQ(answers[0], "attached\n");
  EXPECT_EQ(answers[1], "attached\n");
  EXPECT_EQ(answers[2], "Cannot allocate memory\n");
  EXPECT_EQ(Probe("blue", "attach"), "attached");
  EXPECT_EQ(EventOf("tenants/red/pools/small", "sessions"),
            "tenants/red/pools/small: limit of sessions reached, which is 2 for the pool");
  EXPECT_GE(Refused("tenants/red/pools/small", "sessions"), 1u);
  EXPECT_EQ(Refused("tenants/blue/pools/big", "sessions"), 0u);
  input.Reset();
  for (FILE* const program : programs) pclose(program);
}

// 10.9.0.2 is the picky pool's and nobody else's; its programs talk to 10.9.0.0 to .7 only.
TEST_F(PoolsE2e, AddressesAndPeers_KeepToThePool) {
  EXPECT_EQ(Probe("picky", "bind 10.9.0.2"), "0 Success");
  EXPECT_EQ(Probe("picky", "bind 10.9.0.1"), "-1 Cannot assign requested address");
  EXPECT_EQ(Probe("blue", "bind 10.9.0.1"), "0 Success");
  EXPECT_EQ(Probe("blue", "bind 10.9.0.2"), "-1 Cannot assign requested address");
  EXPECT_EQ(Probe("picky", "connects 10.9.0.9"), "0 Permission denied");
  EXPECT_EQ(Refused("tenants/red/pools/picky", "allowed_peers"), 1u);
  EXPECT_EQ(Refused("tenants/blue/pools/big", "allowed_peers"), 0u);
}

// On an address that both may use the second tenant gets errno and event; on one of its own it
// listens on the same port.
TEST_F(PoolsE2e, PortThatAnotherTenantHas_IsTakenOnThatAddressOnly) {
  const NetworkNamespace::Inside inside(*space_);
  ASSERT_EQ(mkfifo(File("input").c_str(), 0600), 0);
  UniqueFd input(open(File("input").c_str(), O_RDWR | O_CLOEXEC));
  FILE* const first =
      popen((Command("red", "listen 10.9.0.1 7000") + " <" + File("input")).c_str(), "re");
  char line[256] = "";
  ASSERT_NE(std::fgets(line, sizeof line, first), nullptr);
  EXPECT_STREQ(line, "0 Success\n");
  const auto listen = [&](const char* pool, const std::string& where) {
    return Probe(pool, "listen " + where + " </dev/null");
  };
  EXPECT_EQ(listen("blue", "10.9.0.1 7000"), "-1 Address already in use");
  gateway::v1::ListEventsResponse events;
  ASSERT_TRUE(state_->ListEvents(Soon().get(), {}, &events).ok());
  std::string told;
  for (const auto& event : events.events()) {
    if (event.reason() == "ADDRESS_IN_USE") told += event.object() + ": " + event.message();
  }
  EXPECT_NE(told.find("tenants/blue/pools/big"), std::string::npos) << told;
  EXPECT_NE(told.find("7000"), std::string::npos) << told;
  EXPECT_EQ(told.find("tenants/red"), std::string::npos)
      << "who has it is not the other's business";
  EXPECT_EQ(listen("picky", "10.9.0.2 7000"), "0 Success");
  EXPECT_EQ(listen("blue", "10.9.0.1 7001"), "0 Success");
  input.Reset();
  pclose(first);
  EXPECT_EQ(listen("blue", "10.9.0.1 7000"), "0 Success") << "it is free again";
}

// The test answers as the agent does.
TEST_F(PoolsE2e, Identity_HeldUntilTheVerdict) {
  const char* const pool = "tenants/blue/pools/asked";
  uint64_t denied = 0;
  // A program that is refused at once looks for its gateway again, as often as it likes.
  const auto attach = [&](bool allowed) {
    auto printed = std::async(std::launch::async, [&] { return Probe("asked", "attach"); });
    while (printed.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      gateway::v1::ListHeldAttachesRequest list;
      list.mutable_wait()->set_seconds(1);
      gateway::v1::ListHeldAttachesResponse held;
      EXPECT_TRUE(identity_->ListHeldAttaches(Soon().get(), list, &held).ok());
      for (const gateway::v1::HeldAttach& who : held.attaches()) {
        EXPECT_EQ(who.pool(), pool);
        EXPECT_EQ(who.socket(), Socket("asked"));
        EXPECT_EQ(who.comm(), "quota_probe");
        EXPECT_EQ(who.uid(), geteuid());
        EXPECT_GT(who.pid(), 0);
        EXPECT_NE(who.start_time(), 0u);
        gateway::v1::AnswerAttachRequest answer;
        gateway::v1::AnswerAttachResponse nothing;
        answer.set_id(who.id());
        answer.set_allowed(allowed);
        answer.set_reason("not on the list");
        if (identity_->AnswerAttach(Soon().get(), answer, &nothing).ok()) denied += allowed ? 0 : 1;
      }
    }
    return printed.get();
  };
  EXPECT_EQ(attach(true), "attached");
  EXPECT_EQ(Refused(pool, "identity"), 0u);
  EXPECT_EQ(attach(false), "Permission denied");
  EXPECT_GE(denied, 1u);
  EXPECT_EQ(Refused(pool, "identity"), denied);
  gateway::v1::ListEventsResponse events;
  ASSERT_TRUE(state_->ListEvents(Soon().get(), {}, &events).ok());
  ASSERT_GT(events.events_size(), 0);
  EXPECT_EQ(events.events(0).reason(), "IDENTITY_DENIED");
  EXPECT_EQ(events.events(0).object(), pool);
  EXPECT_NE(events.events(0).message().find("refused: not on the list"), std::string::npos);
  // Nobody answers.
  EXPECT_EQ(Probe("asked", "attach"), "Permission denied");
  EXPECT_EQ(Refused(pool, "identity"), denied + 1);
  EXPECT_EQ(Probe("blue", "attach"), "attached");
  EXPECT_EQ(Refused("tenants/blue/pools/big", "identity"), 0u);
}

// A call that waits for somebody to attach does not keep the daemon from stopping.
TEST_F(PoolsE2e, Identity_WhoWaitsDoesNotHoldTheDaemon) {
  gateway::v1::ListHeldAttachesRequest list;
  list.mutable_wait()->set_seconds(15);
  gateway::v1::ListHeldAttachesResponse held;
  auto context = Soon();
  std::promise<grpc::Status> answered;
  identity_->async()->ListHeldAttaches(
      context.get(), &list, &held, [&](const grpc::Status& status) { answered.set_value(status); });
  gateway::v1::GetConfigResponse config;
  ASSERT_TRUE(config_->GetConfig(Soon().get(), {}, &config).ok());
  const auto begin = std::chrono::steady_clock::now();
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->WaitExit(), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  (void)answered.get_future().get();
}

// Programs are killed in the middle of it: what is ready is ready again, and nothing is left over.
TEST_F(PoolsE2e, ReadyQps_KilledProgramsLeaveNothing) {
  const char* const pool = "tenants/blue/pools/fast";
  const auto whole = [&] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline) {
      const types::v1::PoolUsage usage = UsageOf(pool);
      if (usage.ready().ready() == 8 && LimitOf(pool, "qps").used() == 0 &&
          LimitOf(pool, "segment_bytes").used() == usage.ready().bytes() &&
          usage.ready().bytes() == 4194304)
        return true;
    }
    return false;
  };
  ASSERT_TRUE(whole()) << UsageOf(pool).ShortDebugString();
  const NetworkNamespace::Inside inside(*space_);
  ASSERT_EQ(mkfifo(File("input").c_str(), 0600), 0);
  UniqueFd input(open(File("input").c_str(), O_RDWR | O_CLOEXEC));
  for (int life = 0; life < 3; ++life) {
    FILE* const program =
        popen((Command("fast", "hold_qps 6") + " <" + File("input")).c_str(), "re");
    char line[256] = "";
    ASSERT_NE(std::fgets(line, sizeof line, program), nullptr);
    int made = 0;
    int pid = 0;
    ASSERT_EQ(std::sscanf(line, "%d of process %d", &made, &pid), 2) << line;
    EXPECT_EQ(made, 6);
    EXPECT_EQ(LimitOf(pool, "qps").used(), 6u);
    ASSERT_EQ(kill(pid, SIGKILL), 0);
    pclose(program);
    EXPECT_TRUE(whole()) << UsageOf(pool).ShortDebugString();
  }
  EXPECT_EQ(UsageOf(pool).ready().hits(), 18u);
  EXPECT_EQ(UsageOf(pool).ready().misses(), 0u);
}

TEST_F(PoolsE2e, Drain_RefusesTheNewAndIsTakenBack) {
  gateway::v1::DrainRequest request;
  gateway::v1::DrainResponse response;
  request.set_drain(true);
  ASSERT_TRUE(config_->Drain(Soon().get(), request, &response).ok());
  EXPECT_EQ(response.admin_state(), types::v1::DRAINING);
  EXPECT_TRUE(response.progress().empty());
  EXPECT_EQ(Probe("red", "attach"), "Cannot send after transport endpoint shutdown");
  types::v1::GatewayStatus status;
  ASSERT_TRUE(state_->GetStatus(Soon().get(), {}, &status).ok());
  EXPECT_EQ(status.admin_state(), types::v1::DRAINING);
  request.set_drain(false);
  ASSERT_TRUE(config_->Drain(Soon().get(), request, &response).ok());
  EXPECT_EQ(Probe("red", "attach"), "attached");
}

TEST_F(PoolsE2e, QueryDevice_ReportsThePoolsPeak) {
  EXPECT_EQ(Probe("red", "device"), "5 6 4 3");
  EXPECT_EQ(Probe("blue", "device"), "50 50 50 50");
}

TEST_F(PoolsE2e, Placement_IsThePoolsThatAsksForIt) {
  EXPECT_EQ(Probe("blue", "placement"), "both");
  EXPECT_EQ(Probe("red", "placement"), "not both");
}

// Something is in the way of a socket: the report says what, and it is mended without another push.
TEST_F(PoolsE2e, PoolWhoseSocketCannotBeMade_IsRejectedUntilItCan) {
  gateway::v1::ApplyRequest request;
  PushOnePool("tenants/green", "p", "99999999-0000-4000-8000-000000000000", *request.mutable_push())
      .set_slots(2);
  const std::string place = fs::path(Socket("red")).parent_path().parent_path().parent_path();
  fs::create_directories(place + "/99999999/1/attach.sock");
  gateway::v1::ApplyResponse response;
  const grpc::Status status = config_->Apply(Soon().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.report().rejections_size(), 1) << response.report().ShortDebugString();
  EXPECT_EQ(response.report().rejections(0).reason(), "SOCKET_FAILED");
  EXPECT_NE(response.report().rejections(0).message().find("slot 1"), std::string::npos)
      << response.report().rejections(0).message();
  EXPECT_FALSE(fs::exists(place + "/99999999/0/attach.sock"));
  fs::remove_all(place + "/99999999");
  gateway::v1::GetConfigResponse config;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do {
    ASSERT_TRUE(config_->GetConfig(Soon().get(), {}, &config).ok());
  } while (config.rejections_size() != 0 && std::chrono::steady_clock::now() < until);
  EXPECT_EQ(config.rejections_size(), 0);
  EXPECT_TRUE(fs::exists(place + "/99999999/0/attach.sock"));
  EXPECT_TRUE(fs::exists(place + "/99999999/1/attach.sock"));
}

// A push replaces the static configuration, object by object, and survives kill -9.
TEST_F(PoolsE2e, Push_TakesEffectAndIsWhatRunsAfterAKill) {
  gateway::v1::ApplyRequest request;
  types::v1::PoolSpec& spec = PushOnePool(
      "tenants/red", "small", "aaaaaaaa-0000-4000-8000-000000000000", *request.mutable_push());
  spec.set_slots(1);
  spec.mutable_quota()->mutable_peak()->set_pds(9);
  gateway::v1::ApplyResponse response;
  grpc::Status status = config_->Apply(Soon().get(), request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.report().status(), types::v1::APPLIED);
  EXPECT_EQ(response.report().rejections_size(), 0) << response.report().ShortDebugString();
  EXPECT_EQ(Probe("red", "pds"), "9 Cannot allocate memory");
  EXPECT_FALSE(fs::exists(Socket("blue")));

  daemon_->Signal(SIGKILL);
  daemon_->WaitExit();
  Start();
  EXPECT_EQ(Probe("red", "pds"), "9 Cannot allocate memory");
  gateway::v1::GetConfigResponse config;
  ASSERT_TRUE(config_->GetConfig(Soon().get(), {}, &config).ok());
  EXPECT_EQ(config.source(), request.push().store_uuid());
  EXPECT_EQ(config.applied_revision(), 5);
  types::v1::GatewayStatus gateway;
  ASSERT_TRUE(state_->GetStatus(Soon().get(), {}, &gateway).ok());
  EXPECT_EQ(gateway.applied_revision(), 5);
  EXPECT_EQ(gateway.capacity().qps(), 65536u);
}

}  // namespace
}  // namespace rocegw::testing
