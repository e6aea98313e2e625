// SPDX-License-Identifier: Apache-2.0
// Probes from the question to its answer, with a simulated gateway and scripts instead of the two
// programs.
#include "agent/probe/probes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace rocegw::agent {
namespace {

using fleet::v1::TunnelAnswer;
using fleet::v1::TunnelQuestion;

constexpr char kPool[] = "tenants/a/pools/p";

// Gateway with two pages of pools; a queue pair of each number.
class PoolsAndQps final : public GatewayPort {
 public:
  void Probe(std::function<void(StatusOr<GatewayProbe>)>) override {}
  void GetConfig(std::function<void(StatusOr<gateway::v1::GetConfigResponse>)>) override {}
  void Apply(const types::v1::Push&,
             std::function<void(StatusOr<types::v1::PushReport>)>) override {}
  void ListHeldAttaches(
      uint64_t, std::function<void(StatusOr<gateway::v1::ListHeldAttachesResponse>)>) override {}
  void AnswerAttach(uint64_t, bool, const std::string&, const gateway::v1::SlotLimits&) override {}
  void Ask(const TunnelQuestion& question, std::function<void(TunnelAnswer)> done) override {
    TunnelAnswer answer;
    if (question.has_list_qps()) {
      auto& qp = *answer.mutable_qps()->add_qps();
      qp.set_transport("channel to " + std::to_string(question.list_qps().qpn()));
      qp.set_transport_reason("because");
    } else if (question.list_pools().page_token().empty()) {
      answer.mutable_pools()->add_pools()->set_pool("tenants/a/pools/bare");
      answer.mutable_pools()->set_next_page_token("more");
    } else {
      auto& pool = *answer.mutable_pools()->add_pools();
      pool.set_pool(kPool);
      pool.add_sockets("/run/the.sock");
    }
    if (deaf) {
      answer.set_code(14);
      answer.set_message("nobody");
    }
    if (holds) {
      held.emplace_back([answer, done] { done(answer); });
    } else {
      done(answer);
    }
  }

  bool deaf = false;
  bool holds = false;
  std::vector<std::function<void()>> held;
};

class ProbesTest : public ::testing::Test {
 protected:
  ProbesTest() {
    EXPECT_TRUE(loop_.Open().ok());
    char pattern[] = "/tmp/rocegw-probes-XXXXXX";
    folder_ = mkdtemp(pattern);
    probes_.emplace(loop_, gateway_, folder_);
  }
  ~ProbesTest() override {
    probes_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Script(const std::string& name, const std::string& text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), 0755);
  }
  // Makes the probe run `script`.
  void Programs(const std::string& script) const {
    Script("rocegw-run", script);
    Script("rocegw-probe", "exit 1");
  }
  static fleet::v1::ProbeRequest Request(const std::string& address = {}) {
    fleet::v1::ProbeRequest request;
    request.set_pool(kPool);
    request.set_address(address);
    request.set_port(7);
    request.set_message_bytes(64);
    request.set_round_trips(1000);
    request.mutable_time_limit()->set_seconds(20);
    return request;
  }
  void Start(uint64_t question, const fleet::v1::ProbeRequest& request) {
    probes_->Start(question, request, [this, question](TunnelAnswer answer) {
      answer.set_id(question);
      answers_.push_back(std::move(answer));
    });
  }
  void Until(size_t answers) {
    while (answers_.size() < answers) loop_.RunOnce(Seconds(1));
  }
  void UntilNoneRuns() {
    while (probes_->running() != 0) loop_.RunOnce(Seconds(1));
  }

  ControlLoop loop_;
  PoolsAndQps gateway_;
  std::string folder_;
  std::optional<Probes> probes_;
  std::vector<TunnelAnswer> answers_;
};

TEST_F(ProbesTest, OneThatWaits_TellsWhere_AndEndsWithItsQuestion) {
  Programs("echo listening 192.0.2.9 40000; echo nonsense; exec sleep 1000");
  Start(1, Request());
  Until(1);
  EXPECT_EQ(answers_[0].id(), 1u);
  EXPECT_TRUE(answers_[0].more());
  EXPECT_EQ(answers_[0].probe().address(), "192.0.2.9");
  EXPECT_EQ(answers_[0].probe().port(), 40000u);
  EXPECT_EQ(probes_->running(), 1u);
  probes_->Cancel(1);
  UntilNoneRuns();
  EXPECT_EQ(answers_.size(), 1u) << "nobody is told of the end of what he cancelled";
}

TEST_F(ProbesTest, OneThatMeasures_IsKeptUntilItsTransportIsKnown) {
  Programs("echo measured 77 1 2 3 4 5 6 7; exec sleep 1000");
  Start(1, Request("192.0.2.9"));
  Until(1);
  EXPECT_FALSE(answers_[0].more());
  EXPECT_EQ(answers_[0].probe().connectivity().round_trip_p99_ns(), 5u);
  EXPECT_EQ(answers_[0].probe().connectivity().transport(), "channel to 77");
  EXPECT_EQ(answers_[0].probe().connectivity().transport_reason(), "because");
  UntilNoneRuns();
}

TEST_F(ProbesTest, TheNetworkBesideRdma_IsPartOfTheOneAnswer) {
  const std::string plain = "echo plain 400 399 0 399 399 0 50000 7 -1; ";
  const std::string measured = "echo measured 77 1 2 3 4 5 6 7; ";
  // Probes of older packages tell of the network beside RDMA first.
  for (const std::string& lines : {measured + "sleep 0.1; " + plain, plain + measured}) {
    answers_.clear();
    Programs(lines + "exec sleep 1000");
    auto request = Request("192.0.2.9");
    request.set_plain(true);
    Start(1, request);
    Until(1);
    EXPECT_FALSE(answers_[0].more());
    EXPECT_EQ(answers_[0].probe().connectivity().plain().received(), 399u);
    EXPECT_EQ(answers_[0].probe().connectivity().plain().clock_ahead_ns(), -1);
    EXPECT_EQ(answers_[0].probe().connectivity().round_trip_p99_ns(), 5u);
    UntilNoneRuns();
  }
}

TEST_F(ProbesTest, TheResultOverRdma_IsKeptWhateverComesOfTheNetworkBesideIt) {
  const std::pair<const char*, const char*> ends[] = {
      {"echo failed timed_out no answer in time while measuring; exec sleep 1000",
       "no answer in time while measuring"},
      // More arrived than was sent.
      {"echo plain 400 401 0 0 0 0 0 0 -; exec sleep 1000", "the probe's line is not understood"},
      {"exit 3", "the probe ended with status 3"},
  };
  for (const auto& [end, problem] : ends) {
    SCOPED_TRACE(end);
    answers_.clear();
    Programs(std::string("echo measured 77 1 2 3 4 5 6 7; ") + end);
    auto request = Request("192.0.2.9");
    request.set_plain(true);
    Start(1, request);
    Until(1);
    EXPECT_EQ(answers_[0].probe().fault(), types::v1::CONNECTIVITY_FAULT_UNSPECIFIED);
    EXPECT_EQ(answers_[0].probe().connectivity().round_trip_p99_ns(), 5u);
    EXPECT_EQ(answers_[0].probe().connectivity().plain().problem(), problem);
    EXPECT_FALSE(answers_[0].probe().connectivity().plain().has_clock_ahead_ns());
    UntilNoneRuns();
  }
}

TEST_F(ProbesTest, AProbeOnlyOverRdma_IsNotAskedForMore) {
  Programs("echo measured 77 1 2 3 4 5 6 7; exec sleep 1000");
  Start(1, Request("192.0.2.9"));
  Until(1);
  EXPECT_FALSE(answers_[0].probe().connectivity().has_plain());
  UntilNoneRuns();
}

TEST_F(ProbesTest, Programs_GetWhatIsNeeded) {
  setenv("ROCEGW_DISABLE", "1", 1);
  Programs("echo failed failed \"$ROCEGW_DISABLE$ROCEGW_RUN $@\"");
  auto request = Request("fd77::9");
  request.set_bulk_bytes(4096);
  request.set_plain(true);
  Start(1, request);
  Until(1);
  unsetenv("ROCEGW_DISABLE");
  EXPECT_EQ(answers_[0].probe().message(),
            "1 --socket /run/the.sock -- " + folder_ +
                "/rocegw-probe --time-limit 20000 --connect fd77::9 7 --message-bytes 64 "
                "--round-trips 1000 --bulk-bytes 4096 --plain");
  answers_.clear();
  Start(2, Request());
  Until(1);
  EXPECT_EQ(answers_[0].probe().message(),
            "1 --socket /run/the.sock -- " + folder_ + "/rocegw-probe --time-limit 20000");
}

TEST_F(ProbesTest, WhatIsMissing_IsSaid) {
  Start(1, Request());
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].probe().fault(), types::v1::NO_PROBE);
  EXPECT_EQ(answers_[0].probe().message(), "there is no " + folder_ + "/rocegw-run");
  Programs("exit 0");
  for (const char* pool : {"tenants/a/pools/none", "tenants/a/pools/bare"}) {
    auto request = Request();
    request.set_pool(pool);
    Start(2, request);
    EXPECT_EQ(answers_.back().probe().fault(), types::v1::ATTACH_REFUSED) << pool;
  }
  EXPECT_EQ(answers_[2].probe().message(),
            "tenants/a/pools/bare has no attach socket on the gateway");
  gateway_.deaf = true;
  Start(3, Request());
  EXPECT_EQ(answers_.back().probe().message(), "the gateway does not answer: nobody");
  EXPECT_EQ(probes_->running(), 0u);
}

TEST_F(ProbesTest, Refusal_HasTheGatewaysWords) {
  Programs(
      "echo 'rocegw[1]: the gateway refuses this program: not you' >&2; "
      "echo failed attach_refused no device");
  Start(1, Request());
  Until(1);
  EXPECT_EQ(answers_[0].probe().fault(), types::v1::ATTACH_REFUSED);
  EXPECT_EQ(answers_[0].probe().message(), "the gateway refuses this program: not you");
}

TEST_F(ProbesTest, OneThatDoesNotEnd_IsKilled) {
  Programs("trap '' TERM; sleep 1000");
  auto request = Request();
  request.mutable_time_limit()->set_seconds(0);
  Start(1, request);
  Until(1);
  EXPECT_EQ(answers_[0].probe().fault(), types::v1::TIMED_OUT);
  UntilNoneRuns();
}

TEST_F(ProbesTest, MoreThanMayRun_Refused) {
  Programs("exec sleep 1000");
  for (uint64_t i = 0; i < Probes::kMost; ++i) Start(i, Request());
  EXPECT_TRUE(answers_.empty());
  Start(100, Request());
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_EQ(answers_[0].probe().fault(), types::v1::TOO_MANY_PROBES);
  probes_->CancelAll();
  UntilNoneRuns();
  Start(101, Request());
  EXPECT_EQ(answers_.size(), 1u);
}

TEST_F(ProbesTest, CancelledBeforeTheGatewayAnswered_StartsNothing) {
  Programs("exec sleep 1000");
  gateway_.holds = true;
  Start(1, Request());
  probes_->Cancel(1);
  for (const auto& answer : std::exchange(gateway_.held, {})) answer();
  EXPECT_EQ(probes_->running(), 0u);
  Start(2, Request());
  probes_.reset();
  for (const auto& answer : std::exchange(gateway_.held, {})) answer();
  EXPECT_TRUE(answers_.empty());
}

}  // namespace
}  // namespace rocegw::agent
