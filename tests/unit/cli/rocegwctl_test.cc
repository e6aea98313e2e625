// SPDX-License-Identifier: Apache-2.0
// The rocegwctl program against a real server with a simulated source. Its output is compared with
// the files in golden/; ROCEGW_UPDATE_GOLDEN=1 writes them anew.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "controlplane/cli/exit_code.h"
#include "gateway/service/grpc_server.h"
#include "proto/rules/finding.h"
#include "tests/unit/service/fake_source.h"

namespace rocegw::cli {
namespace {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

std::string ReadAll(const std::string& file) {
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Configuration with one rejected object.
class FakeConfig final : public service::ConfigSource {
 public:
  void Apply(const types::v1::Push&,
             std::function<void(bool, types::v1::PushReport)> done) override {
    done(false, {});
  }
  // Two sessions, of which one ends with each query.
  void Drain(bool drain, std::function<void(bool, session::DrainRow)> done) override {
    session::DrainRow row;
    row.active = drain;
    row.sessions = drain && sessions > 0 ? sessions-- : 0;
    row.qps = row.sessions;
    row.empty = row.qps == 0;
    done(true, row);
  }
  std::atomic<uint32_t> sessions{2};
  void Describe(std::function<void(bool, gateway::v1::GetConfigResponse)> done) override {
    gateway::v1::GetConfigResponse config;
    auto& rejection = *config.add_rejections();
    rejection.set_object("tenants/blue/pools/web");
    rejection.set_reason("ADDRESS_TAKEN");
    rejection.set_message("192.0.2.1 belongs to tenants/red/pools/p1");
    done(true, std::move(config));
  }
};

// Captures without packets.
class FakeCaptures final : public service::CaptureSource {
 public:
  void StartCapture(const session::CaptureOrder& order, std::shared_ptr<port::CaptureSink> sink,
                    std::function<void(const Status&)> started) override {
    last = order;
    if (order.pool == "tenants/none/pools/-") return started({ENOENT, "it is not here"});
    (void)tap_.Stop();
    started(tap_.Start(std::move(sink), order.bounds));
  }
  void AbortCapture(std::shared_ptr<port::CaptureSink>) override {}

  session::CaptureOrder last;

 private:
  port::CaptureTap tap_;
};

// Findings, one of each severity.
class FakeDiagnoses final : public service::DiagnosisSource {
 public:
  void Diagnose(std::function<void(const gateway::v1::DiagnoseResponse&)> done) override {
    done(response);
  }
  gateway::v1::DiagnoseResponse response = [] {
    gateway::v1::DiagnoseResponse all;
    const std::string host = "gateways/host-a";
    *all.add_diagnoses() =
        rules::Check("udp_port", host)
            .Fail("UDP 4791 is held by process 33 (python3) of user 7",
                  "packets that are for the gateway go there, or it cannot start",
                  "stop it: kill 33");
    *all.add_diagnoses() =
        rules::Check("offloads", host + "/ports/port0")
            .Warn("tx, gro off at eth0 (ena)",
                  "the kernel refuses sends of several packets in one call: each packet is a call",
                  "ethtool -K eth0 tx on gro on");
    *all.add_diagnoses() = rules::Check("clock", host).Ok("synchronised, at most 2 ms off");
    return all;
  }();
};

class RocegwctlTest : public testing::Test {
 protected:
  void SetUp() override {
    source_.state = service::TestState();
    readiness_.SetReady();
    const Status status = server_.Start({socket_});
    ASSERT_TRUE(status.ok()) << status.text();
  }

  Outcome Ctl(const std::string& arguments) const { return CtlAt(socket_, arguments); }
  Outcome CtlAt(const std::string& socket, const std::string& arguments) const {
    const std::string error_file = directory_.File("stderr");
    FILE* pipe = popen(
        (std::string(ROCEGWCTL) + " --socket '" + socket + "' " + arguments + " 2>" + error_file)
            .c_str(),
        "r");
    EXPECT_NE(pipe, nullptr);
    Outcome run;
    char buffer[4096];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) run.out.append(buffer, n);
    const int status = pclose(pipe);
    run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    run.err = ReadAll(error_file);
    return run;
  }

  void ExpectGolden(const std::string& name, const std::string& arguments, int code = kOk) const {
    const Outcome run = Ctl(arguments);
    EXPECT_EQ(run.code, code) << run.err;
    EXPECT_EQ(run.err, "");
    const std::string file = std::string(GOLDEN_DIR) + "/" + name;
    if (std::getenv("ROCEGW_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << run.out;
    EXPECT_EQ(run.out, ReadAll(file)) << arguments;
  }

  service::TestDirectory directory_;
  std::string socket_ = directory_.File("grpc.sock");
  service::GatewayIdentity identity_ = service::TestIdentity();
  service::Readiness readiness_;
  service::FakeSource source_;
  FakeConfig config_;
  FakeCaptures captures_;
  FakeDiagnoses diagnoses_;
  service::GrpcServer server_{identity_, readiness_, source_,    &config_,
                              nullptr,   &captures_, &diagnoses_};
};

TEST_F(RocegwctlTest, DrainHere_WaitsUntilItIsEmpty) {
  EXPECT_EQ(Ctl("drain").out, "draining\n");
  const Outcome waited = Ctl("drain --wait");
  EXPECT_EQ(waited.out, "drained\n") << waited.err;
  EXPECT_NE(Ctl("drain -o json").out.find("DRAINING"), std::string::npos);
  EXPECT_EQ(Ctl("undrain").out, "in service\n");
  config_.sessions = 1000;
  const Outcome impatient = Ctl("drain --wait --timeout 300ms");
  EXPECT_EQ(impatient.code, kDeadline);
  EXPECT_NE(impatient.err.find("queue pairs left"), std::string::npos) << impatient.err;
  EXPECT_EQ(Ctl("drain --deadline 5s").code, kUsage);
}

TEST_F(RocegwctlTest, Status_EveryFormat_IsAsRecorded) {
  ExpectGolden("status.txt", "status");
  ExpectGolden("status_wide.txt", "status -o wide");
  EXPECT_EQ(Ctl("status -o name").out, "gateways/host-a\n");
}

TEST_F(RocegwctlTest, Documents_AreAsRecorded) {
  ExpectGolden("sessions.json", "get sessions -o json");
  ExpectGolden("qps.json", "get qps -o json");
  ExpectGolden("mrs.json", "get mrs -o json");
  ExpectGolden("sessions.yaml", "get sessions -o yaml");
  ExpectGolden("qps.yaml", "get qps -o yaml");
}

TEST_F(RocegwctlTest, StatusDocuments_HoldEverythingAndAgree) {
  const auto json = nlohmann::json::parse(Ctl("status -o json").out);
  EXPECT_EQ(json["gateway"]["ports"][0]["interface"], "eth0");
  EXPECT_EQ(json["gateway"]["totals"]["registeredBytes"], "12582912");
  EXPECT_EQ(json["sessions"]["sessions"][0]["command"], "ib_write_bw");
  EXPECT_EQ(json["qps"]["qps"].size(), 2u);
  EXPECT_EQ(json["mrs"]["mrs"][1]["rkeyMasked"], "0x******01");
  EXPECT_EQ(json["counters"]["counters"].size(), metrics::AllCounters().size());
  EXPECT_EQ(json["counters"]["counters"][3]["values"], nlohmann::json({"3", "103"}));
  const YAML::Node yaml = YAML::Load(Ctl("status -o yaml").out);
  EXPECT_EQ(yaml["gateway"]["ports"][0]["interface"].as<std::string>(), "eth0");
  EXPECT_EQ(yaml["counters"]["counters"].size(), json["counters"]["counters"].size());
  EXPECT_EQ(yaml["counters"]["drops"].size(), metrics::kDropReasonCount - 1);
}

TEST_F(RocegwctlTest, Get_EveryNoun_IsAsRecorded) {
  ExpectGolden("sessions.txt", "get sessions");
  ExpectGolden("qps.txt", "get qps");
  ExpectGolden("mrs.txt", "get mrs");
  ExpectGolden("connections.txt", "get connections");
  ExpectGolden("connections_wide.txt", "get connections -o wide");
  ExpectGolden("describe_qp.txt", "describe qp 0x0412ab");
  ExpectGolden("describe_connection.txt", "describe connection 0xa1b2c3d4");
  ExpectGolden("counters.txt", "get counters");
  EXPECT_EQ(Ctl("get sessions -o name").out, "gateways/host-a/sessions/3\n");
  EXPECT_EQ(Ctl("get qps -o name").out,
            "gateways/host-a/qps/0x000012\ngateways/host-a/qps/0x0412ab\n");
  ExpectGolden("srqs.txt", "get srqs");
  ExpectGolden("srqs_wide.txt", "get srqs -o wide");
  ExpectGolden("describe_srq.txt", "describe srq 3-1");
  EXPECT_EQ(Ctl("get mrs -o name").out,
            "gateways/host-a/mrs/3-1\ngateways/host-a/mrs/3-2\n"
            "gateways/host-a/mrs/3-w1\ngateways/host-a/mrs/3-w2\n");
}

TEST_F(RocegwctlTest, Endpoints_AreShownWithTheirOwnState) {
  for (const char* const state : {"ready", "suspended", "draining", "exception", "error"}) {
    source_.state.qps = {{.session = 3,
                          .qpn = 0x77,
                          .type = ROCEGW_QPT_ENDPOINT,
                          .state = 3,
                          .endpoint = session::EndpointRow{.state = state,
                                                           .mode = "unordered",
                                                           .suspends_on_failure = true,
                                                           .requests = 3,
                                                           .messages = 4,
                                                           .failures = 5}}};
    std::istringstream table(Ctl("get qps").out);
    std::string line;
    std::getline(table, line);
    std::getline(table, line);
    EXPECT_TRUE(line.starts_with("0x000077  ENDPOINT  " + std::string(state))) << line;
    const auto json = nlohmann::json::parse(Ctl("get qps -o json").out);
    EXPECT_EQ(json["qps"][0]["endpoint"], nlohmann::json({{"state", state},
                                                          {"mode", "unordered"},
                                                          {"suspendsOnFailure", true},
                                                          {"requests", 3},
                                                          {"messages", 4},
                                                          {"failures", "5"}}));
    const std::string described = Ctl("describe qp 0x000077").out;
    EXPECT_NE(described.find(state), std::string::npos) << described;
    EXPECT_NE(described.find("Mode:"), std::string::npos) << described;
  }
  const std::string wide = Ctl("get qps -o wide").out;
  EXPECT_NE(wide.find("unordered"), std::string::npos) << wide;
}

TEST_F(RocegwctlTest, Describe_OfRowsThatAreNotThere_SaysSo) {
  const Outcome run = Ctl("describe qp 0x0412ab 0x000099");
  EXPECT_EQ(run.code, kNotFound);
  EXPECT_NE(run.err.find("0x000099"), std::string::npos);
  EXPECT_EQ(Ctl("describe qps -o name").out,
            "gateways/host-a/qps/0x000012\ngateways/host-a/qps/0x0412ab\n");
}

TEST_F(RocegwctlTest, Tables_StayWithin80Columns) {
  // The widest values: IPv6 everywhere, long names, numbers at their limits.
  wire::Gid v6;
  v6.bytes.fill(0xFD);
  for (session::PortRow& port : source_.state.ports) {
    port.interface = "enp129s0f1np1";
    port.gids = {v6, v6, v6};
  }
  for (session::QpRow& qp : source_.state.qps) {
    qp.remote_gid = qp.local_gid = v6;
    qp.remote_qpn = 0xFFFFFE;
    qp.sends_posted = qp.sends_completed = 99999999;
  }
  for (session::MrRow& mr : source_.state.mrs) mr.reason = std::string(200, 'r');
  for (session::SrqRow& srq : source_.state.srqs) {
    srq.size = srq.held = srq.limit = srq.qps = 9999999;
    srq.taken = 99999999999;
  }
  for (session::ConnectionRow& connection : source_.state.connections) {
    connection.state = "REQ not sent yet";
    connection.remote_gid = v6;
  }
  for (session::ChannelRow& channel : source_.state.channels) {
    channel.remote_gid = v6;
    channel.rtt_ns = 99999999;
    channel.in_flight_bytes = 9999999;
    channel.users = channel.resent = 9999999;
  }
  for (const char* command : {"status", "get sessions", "get qps", "get connections",
                              "get channels", "get mrs", "get srqs", "get counters --all"}) {
    std::istringstream lines(Ctl(command).out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("note: ")) {
        EXPECT_LE(line.size(), 80u) << command << ": " << line;
      }
    }
  }
  // Nothing is truncated with all columns.
  EXPECT_NE(Ctl("get qps -o wide").out.find("fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd"),
            std::string::npos);
}

TEST_F(RocegwctlTest, ManyRows_StatusIsShortAndGetReadsAllPages) {
  source_.state.qps.clear();
  for (uint32_t i = 0; i < 2345; ++i) {
    session::QpRow row;
    row.session = 1;
    row.qpn = 2 + i;
    source_.state.qps.push_back(row);
  }
  const std::string status = Ctl("status").out;
  EXPECT_NE(status.find("... and 2325 more: rocegwctl get qps\n"), std::string::npos) << status;
  const std::string names = Ctl("get qps -o name").out;
  EXPECT_EQ(std::count(names.begin(), names.end(), '\n'), 2345);
}

TEST_F(RocegwctlTest, NothingAttached_StatusSaysSo) {
  source_.state = {};
  const Outcome run = Ctl("status");
  EXPECT_EQ(run.code, kOk);
  EXPECT_NE(run.out.find("sessions 0, QPs 0"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("all counters are zero\nno packet was dropped\n"), std::string::npos);
}

TEST_F(RocegwctlTest, NotReady_StatusSaysWhyAndExits10) {
  readiness_.SetNotReady("port eth0 is down");
  const Outcome run = Ctl("status");
  EXPECT_EQ(run.code, kConditionFalse);
  EXPECT_NE(run.out.find("NOT READY: port eth0 is down"), std::string::npos) << run.out;
}

TEST_F(RocegwctlTest, AWorkerHangs_StatusShowsTheRestAndSaysWhich) {
  source_.state.unanswered = "worker 1 has not answered for 12 s";
  const Outcome run = Ctl("status");
  EXPECT_EQ(run.code, kUnavailable);
  EXPECT_NE(run.out.find("ib_write_bw"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("worker 1 has not answered for 12 s"), std::string::npos) << run.err;
  const Outcome document = Ctl("status -o json");
  EXPECT_EQ(document.code, kUnavailable);
  EXPECT_EQ(document.out, "") << "a document without queue pairs would say that there are none";
}

TEST_F(RocegwctlTest, NobodyThere_SaysWhatToDo) {
  const Outcome missing = CtlAt("/nonexistent/grpc.sock", "status");
  EXPECT_EQ(missing.code, kUnavailable);
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.err,
            "rocegwctl: no gateway at /nonexistent/grpc.sock (No such file or directory); is "
            "rocegwd running? --socket names another place\n");
  server_.Stop();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, socket_.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
  const Outcome dead = Ctl("status");
  EXPECT_EQ(dead.code, kUnavailable);
  EXPECT_NE(dead.err.find("(Connection refused)"), std::string::npos) << dead.err;
}

TEST_F(RocegwctlTest, PoolsAndEventsOfTheGateway) {
  ExpectGolden("pools.txt", "get pools");
  ExpectGolden("events.json", "events -o json");
  const std::string events = Ctl("events").out;
  EXPECT_NE(events.find("QUOTA_EXCEEDED  red/p1"), std::string::npos) << events;
  EXPECT_NE(events.find("limit of qps reached"), std::string::npos) << events;
  EXPECT_EQ(Ctl("get events -o name").out, "tenants/red/pools/p1 QUOTA_EXCEEDED\n");
}

TEST_F(RocegwctlTest, Explain_TellsEverythingInSentences) {
  ExpectGolden("explain_qp.txt", "explain --qp 0x12");
  const std::string all = Ctl("explain").out;
  for (const char* part :
       {"Configuration that it rejected\n  blue/web  ADDRESS_TAKEN\n", "Requests that were refused",
        "Packets that were dropped\n  host-a  bad_icrc, 15 times\n    invariant CRC wrong;"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in\n" << all;
  }
  const std::string red = Ctl("explain --tenant red").out;
  EXPECT_EQ(red.find("blue"), std::string::npos) << red;
  EXPECT_EQ(red.find("bad_icrc"), std::string::npos) << red;
  EXPECT_EQ(Ctl("explain --pool red/p9 --during 10ms").out,
            "nothing was refused or dropped, and nothing is in the way\n");
  EXPECT_EQ(Ctl("explain --peer nowhere").code, kFailed);
  EXPECT_EQ(Ctl("explain --qp twelve").code, kUsage);
}

TEST_F(RocegwctlTest, Doctor_TellsTheWorstFirstAndExitsWithIt) {
  const std::string apart = " --agent-dir " + directory_.File("nobody");
  ExpectGolden("doctor.txt", "doctor" + apart, kConditionFalse);
  ExpectGolden("doctor_wide.txt", "doctor -o wide" + apart, kConditionFalse);
  ExpectGolden("doctor.json", "doctor -o json" + apart, kConditionFalse);
  EXPECT_EQ(Ctl("doctor -o name" + apart).out,
            "gateways/host-a udp_port\ngateways/host-a/ports/port0 offloads\n");
  diagnoses_.response.mutable_diagnoses()->DeleteSubrange(0, 1);
  EXPECT_EQ(Ctl("doctor" + apart).code, kWarned);
  diagnoses_.response.mutable_diagnoses()->DeleteSubrange(0, 1);
  const Outcome good = Ctl("doctor" + apart);
  EXPECT_EQ(good.code, kOk);
  EXPECT_EQ(good.out, "0 fail, 0 warn, 1 ok (-o wide shows these)\n");
}

TEST_F(RocegwctlTest, Doctor_WithoutADaemon_LooksAtTheHostItself) {
  const Outcome run = CtlAt("/nonexistent/grpc.sock", "doctor --agent-dir /nonexistent");
  EXPECT_EQ(run.code, kConditionFalse);
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(run.out.starts_with("fail  host  daemon\n    no gateway at /nonexistent/grpc.sock"))
      << run.out;
  const auto json = nlohmann::json::parse(
      CtlAt("/nonexistent/grpc.sock", "doctor -o json --agent-dir /nonexistent").out);
  std::set<std::string> checks;
  for (const auto& one : json["diagnoses"]) checks.insert(one["check"]);
  checks.erase("udp_port");  // present if this host has such a holder
  EXPECT_EQ(checks, (std::set<std::string>{"clock", "daemon", "egress", "remapping"}));
}

TEST_F(RocegwctlTest, Doctor_TooOldGateway_SaysSo) {
  service::GrpcServer old{identity_, readiness_, source_, &config_, nullptr, &captures_};
  const std::string socket = directory_.File("old.sock");
  ASSERT_TRUE(old.Start({socket}).ok());
  const Outcome run = CtlAt(socket, "doctor");
  EXPECT_EQ(run.code, kFailed);
  EXPECT_NE(run.err.find("does not know DebugService/Diagnose"), std::string::npos) << run.err;
}

TEST_F(RocegwctlTest, Capture_WritesAFileAndTellsItsEnd) {
  const std::string file = directory_.File("packets.pcapng");
  const Outcome run = Ctl("capture -w " + file +
                          " --duration 50ms --max-bytes 1MiB --count 5 --snaplen 128 --pool red/p1 "
                          "--qp 18 --peer 192.0.2.9");
  EXPECT_EQ(run.code, kOk) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err.substr(0, 9), "0 packets");
  EXPECT_NE(run.err.find("the time is over"), std::string::npos) << run.err;
  EXPECT_EQ(captures_.last.pool, "tenants/red/pools/p1");
  EXPECT_EQ(captures_.last.qpn, Qpn{18});
  EXPECT_EQ(captures_.last.peer, wire::Gid::FromV4(0xC0000209));
  EXPECT_EQ(captures_.last.bounds.max_bytes, 1U << 20);
  EXPECT_EQ(captures_.last.bounds.max_packets, 5U);
  EXPECT_EQ(captures_.last.bounds.snap_length, 128U);
  const std::string bytes = ReadAll(file);
  ASSERT_GE(bytes.size(), 28U);
  EXPECT_EQ(bytes.substr(0, 4), "\x0A\x0D\x0D\x0A");
  const Outcome piped = Ctl("capture --duration 10ms");
  EXPECT_EQ(piped.code, kOk) << piped.err;
  EXPECT_EQ(piped.out.substr(0, 4), "\x0A\x0D\x0D\x0A");
  EXPECT_EQ(Ctl("capture --tenant none -w " + file).code, kNotFound);
  EXPECT_EQ(Ctl("capture --duration 1h -w " + file).code, kUsage);
  EXPECT_EQ(Ctl("capture --max-bytes 2GiB -w " + file).code, kUsage);
}

TEST_F(RocegwctlTest, GatewaySilent_EndsInTime) {
  source_.answers = false;
  const Outcome run = Ctl("--timeout 1 get qps");
  EXPECT_EQ(run.code, kDeadline);
  EXPECT_EQ(run.err, "rocegwctl: the gateway at " + socket_ +
                         " did not answer within 1000 ms (--timeout)\n");
  source_.AnswerAll();
}

TEST_F(RocegwctlTest, WrongUsage_Exits2) {
  for (const char* arguments :
       {"", "get", "frobnicate", "get sheep", "status -o xml", "status --timeout 0", "drain host-a",
        "completion fish", "create tenant", "apply"}) {
    const Outcome run = Ctl(arguments);
    EXPECT_EQ(run.code, kUsage) << arguments;
    EXPECT_NE(run.err, "") << arguments;
    EXPECT_EQ(run.out, "") << arguments;
  }
  EXPECT_EQ(Ctl("--help").code, kOk);
  EXPECT_NE(Ctl("--help").out.find("Exit status: 0 done"), std::string::npos);
  EXPECT_TRUE(Ctl("--version").out.starts_with("rocegwctl "));
}

}  // namespace
}  // namespace rocegw::cli
