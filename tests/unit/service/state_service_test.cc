// SPDX-License-Identifier: Apache-2.0
// The state service over its real unix socket, with a simulated source.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "gateway/service/grpc_server.h"
#include "rocegw/gateway/v1/state.grpc.pb.h"
#include "tests/unit/service/fake_source.h"

namespace rocegw::service {
namespace {

class StateServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    source_.state = TestState();
    readiness_.SetReady();
    const Status status = server_.Start({directory_.File("grpc.sock"), 0640});
    ASSERT_TRUE(status.ok()) << status.text();
    stub_ = gateway::v1::StateService::NewStub(grpc::CreateChannel(
        "unix:" + directory_.File("grpc.sock"), grpc::InsecureChannelCredentials()));
  }

  static std::unique_ptr<grpc::ClientContext> Within(std::chrono::milliseconds time) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + time);
    return context;
  }
  static std::unique_ptr<grpc::ClientContext> Soon() { return Within(std::chrono::seconds(20)); }

  TestDirectory directory_;
  GatewayIdentity identity_ = TestIdentity();
  Readiness readiness_;
  FakeSource source_;
  GrpcServer server_{identity_, readiness_, source_};
  std::unique_ptr<gateway::v1::StateService::Stub> stub_;
};

TEST_F(StateServiceTest, GetStatus_TellsIdentityPortsAndTotals) {
  types::v1::GatewayStatus status;
  ASSERT_TRUE(stub_->GetStatus(Soon().get(), {}, &status).ok());
  EXPECT_EQ(status.name(), "gateways/host-a");
  EXPECT_EQ(status.version(), "0.1.0");
  EXPECT_EQ(status.start_time().seconds(), 1790000000);
  EXPECT_EQ(status.read_time().seconds(), 1790007384);
  EXPECT_TRUE(status.ready());
  ASSERT_EQ(status.ports_size(), 1);
  EXPECT_EQ(status.ports(0).addresses(0), "192.0.2.1");
  EXPECT_EQ(status.ports(0).addresses(1), "");
  EXPECT_EQ(status.workers_size(), 2);
  EXPECT_EQ(status.totals().registered_bytes(), 12u << 20);
}

TEST_F(StateServiceTest, GetStatus_NotReady_TellsWhy) {
  readiness_.SetNotReady("draining");
  types::v1::GatewayStatus status;
  ASSERT_TRUE(stub_->GetStatus(Soon().get(), {}, &status).ok());
  EXPECT_FALSE(status.ready());
  EXPECT_EQ(status.not_ready_reason(), "draining");
}

TEST_F(StateServiceTest, Lists_CarryEveryField) {
  gateway::v1::ListSessionsResponse sessions;
  ASSERT_TRUE(stub_->ListSessions(Soon().get(), {}, &sessions).ok());
  ASSERT_EQ(sessions.sessions_size(), 1);
  EXPECT_EQ(sessions.sessions(0).name(), "gateways/host-a/sessions/3");
  EXPECT_EQ(sessions.sessions(0).command(), "ib_write_bw");
  EXPECT_EQ(sessions.sessions(0).memory_way(), types::v1::CROSS_PROCESS);

  gateway::v1::ListQpsResponse qps;
  ASSERT_TRUE(stub_->ListQps(Soon().get(), {}, &qps).ok());
  ASSERT_EQ(qps.qps_size(), 2);
  EXPECT_EQ(qps.qps(0).name(), "gateways/host-a/qps/0x000012");
  EXPECT_EQ(qps.qps(0).state(), types::v1::ERR);
  EXPECT_EQ(qps.qps(0).error(), "completion queue overrun");
  EXPECT_EQ(qps.qps(1).type(), types::v1::RC);
  EXPECT_EQ(qps.qps(1).state(), types::v1::RTS);
  EXPECT_EQ(qps.qps(1).remote_address(), "192.0.2.2");
  EXPECT_EQ(qps.qps(1).outstanding(), 10u);
  EXPECT_EQ(qps.qps(1).transport(), "channel");
  EXPECT_EQ(qps.qps(1).transport_reason(), "a channel was agreed on by the CM");
  EXPECT_EQ(qps.qps(0).channels_size(), 0);
  ASSERT_EQ(qps.qps(1).channels_size(), 3);
  EXPECT_EQ(qps.qps(1).channels(0), "gateways/host-a/channels/0x040012");
  EXPECT_EQ(qps.qps(1).channels(2), "gateways/host-a/channels/0x000011");

  gateway::v1::ListConnectionsResponse connections;
  ASSERT_TRUE(stub_->ListConnections(Soon().get(), {}, &connections).ok());
  ASSERT_EQ(connections.connections_size(), 2);
  EXPECT_EQ(connections.connections(0).rejected(), "nobody listens on the service");
  const types::v1::Connection& connection = connections.connections(1);
  EXPECT_EQ(connection.name(), "gateways/host-a/connections/0xa1b2c3d4");
  EXPECT_EQ(connection.sent().vendor_id(), 0x02BADDu);
  EXPECT_EQ(connection.received().options(), 0x207u);
  ASSERT_EQ(connection.agreed_size(), 3);
  EXPECT_EQ(connection.agreed(2), "DCQCN");
  EXPECT_EQ(connection.reason(), "agreed between gateways");
  EXPECT_EQ(connection.remote_address(), "192.0.2.2");

  gateway::v1::ListChannelsResponse channels;
  ASSERT_TRUE(stub_->ListChannels(Soon().get(), {}, &channels).ok());
  ASSERT_EQ(channels.channels_size(), 2);
  EXPECT_EQ(channels.channels(0).state(), "opening");
  EXPECT_EQ(channels.channels(1).ShortDebugString(),
            "name: \"gateways/host-a/channels/0x040012\" number: 262162 peer_number: 524340 "
            "worker: 1 peer_worker: 2 local_address: \"192.0.2.1\" remote_address: \"192.0.2.2\" "
            "traffic_class: 8 path: 3 state: \"open\" agreed: \"channel\" "
            "agreed: \"proportional hints\" congestion: \"caqm\" window_bytes: 65536 "
            "in_flight_bytes: 4096 rtt_ns: 51000 min_rtt_ns: 49000 users: 5 waiting: 6 lost: 7 "
            "resent: 8 spurious: 9 path_changes: 10");

  gateway::v1::ListMrsResponse mrs;
  ASSERT_TRUE(stub_->ListMrs(Soon().get(), {}, &mrs).ok());
  ASSERT_EQ(mrs.mrs_size(), 4);
  EXPECT_EQ(mrs.mrs(0).name(), "gateways/host-a/mrs/3-1");
  EXPECT_EQ(mrs.mrs(0).rkey_masked(), "0x******78");
  EXPECT_EQ(mrs.mrs(0).access_size(), 4);
  EXPECT_EQ(mrs.mrs(0).access(3), "remote_atomic");
  EXPECT_EQ(mrs.mrs(0).way(), types::v1::REMAPPED);
  EXPECT_EQ(mrs.mrs(0).windows(), 1u);
  EXPECT_EQ(mrs.mrs(1).access_size(), 0);
  EXPECT_EQ(mrs.mrs(1).window(), types::v1::WINDOW_TYPE_UNSPECIFIED);
  EXPECT_EQ(
      mrs.mrs(2).ShortDebugString(),
      "name: \"gateways/host-a/mrs/3-w1\" session: 3 handle: 1 rkey_masked: \"0x******42\" "
      "address: 139637976731648 length: 4096 access: \"remote_write\" access: \"remote_read\" "
      "window: WINDOW_TYPE_2 bound_to: \"gateways/host-a/mrs/3-1\" qpn: 266923");
  EXPECT_EQ(mrs.mrs(3).ShortDebugString(),
            "name: \"gateways/host-a/mrs/3-w2\" session: 3 handle: 2 rkey_masked: \"0x******07\" "
            "window: WINDOW_TYPE_1");
  // The key itself must not leave the daemon in any form.
  EXPECT_EQ(mrs.DebugString().find("12345678"), std::string::npos);
  EXPECT_EQ(mrs.DebugString().find(std::to_string(0x12345678)), std::string::npos);
}

TEST_F(StateServiceTest, ListSrqs_CarriesEveryField) {
  gateway::v1::ListSrqsResponse srqs;
  ASSERT_TRUE(stub_->ListSrqs(Soon().get(), {}, &srqs).ok());
  ASSERT_EQ(srqs.srqs_size(), 1);
  EXPECT_EQ(srqs.srqs(0).ShortDebugString(),
            "name: \"gateways/host-a/srqs/3-1\" session: 3 handle: 1 type: BASIC worker: 1 "
            "size: 1024 max_sge: 2 limit: 16 held: 900 qps: 5 taken: 123456 limit_events: 3");
}

TEST_F(StateServiceTest, AnEndpoint_HasItsStateAndCounts) {
  source_.state.qps.push_back({.qpn = 0x77,
                               .type = ROCEGW_QPT_ENDPOINT,
                               .state = 3,
                               .endpoint = session::EndpointRow{.state = "exception",
                                                                .mode = "unordered",
                                                                .suspends_on_failure = true,
                                                                .requests = 3,
                                                                .messages = 4,
                                                                .failures = 5}});
  gateway::v1::ListQpsRequest request;
  request.set_qpn(0x77);
  gateway::v1::ListQpsResponse qps;
  ASSERT_TRUE(stub_->ListQps(Soon().get(), request, &qps).ok());
  ASSERT_EQ(qps.qps_size(), 1);
  EXPECT_EQ(qps.qps(0).type(), types::v1::ENDPOINT);
  EXPECT_EQ(qps.qps(0).endpoint().ShortDebugString(),
            "state: \"exception\" mode: \"unordered\" suspends_on_failure: true requests: 3 "
            "messages: 4 failures: 5");
  request.set_qpn(0x12);
  ASSERT_TRUE(stub_->ListQps(Soon().get(), request, &qps).ok());
  EXPECT_FALSE(qps.qps(0).has_endpoint());
}

TEST_F(StateServiceTest, ListQpsOfOneNumber_HasNoOther) {
  gateway::v1::ListQpsRequest request;
  request.set_qpn(0x12);
  gateway::v1::ListQpsResponse qps;
  ASSERT_TRUE(stub_->ListQps(Soon().get(), request, &qps).ok());
  ASSERT_EQ(qps.qps_size(), 1);
  EXPECT_EQ(qps.qps(0).qpn(), 0x12u);
}

TEST_F(StateServiceTest, Lists_WhileAWorkerHangs_SayWhich) {
  source_.state.unanswered = "worker 1 has not answered for 12 s";
  gateway::v1::ListQpsResponse qps;
  const grpc::Status status = stub_->ListQps(Soon().get(), {}, &qps);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "worker 1 has not answered for 12 s");
}

TEST_F(StateServiceTest, ListPools_HasLimitsAndPages) {
  gateway::v1::ListPoolsRequest request;
  request.set_page_size(1);
  gateway::v1::ListPoolsResponse page;
  ASSERT_TRUE(stub_->ListPools(Soon().get(), request, &page).ok());
  ASSERT_EQ(page.pools_size(), 1);
  EXPECT_EQ(page.pools(0).pool(), "tenants/red/pools/p1");
  EXPECT_EQ(page.pools(0).uid(), "uid-1");
  ASSERT_EQ(page.pools(0).limits_size(), 2);
  EXPECT_EQ(page.pools(0).limits(0).limit(), "qps");
  EXPECT_EQ(page.pools(0).limits(0).used(), 11u);
  EXPECT_EQ(page.pools(0).limits(0).committed(), 5u);
  EXPECT_EQ(page.pools(0).limits(0).peak(), 20u);
  EXPECT_EQ(page.pools(0).limits(0).refused(), 3u);
  EXPECT_FALSE(page.pools(0).limits(1).has_peak());
  EXPECT_EQ(page.pools(0).sockets(0), "/run/rocegw/a/uid/0/attach.sock");
  EXPECT_EQ(page.pools(0).ready().ShortDebugString(),
            "wanted: 16 ready: 15 bytes: 4194304 hits: 30 misses: 2");
  request.set_page_token(page.next_page_token());
  ASSERT_TRUE(stub_->ListPools(Soon().get(), request, &page).ok());
  ASSERT_EQ(page.pools_size(), 1);
  EXPECT_EQ(page.pools(0).pool(), "tenants/red/pools/p2");
  EXPECT_FALSE(page.pools(0).has_ready());
  EXPECT_EQ(page.next_page_token(), "");
}

TEST_F(StateServiceTest, ListEvents_TellsWhatAndHowOften) {
  gateway::v1::ListEventsResponse events;
  ASSERT_TRUE(stub_->ListEvents(Soon().get(), {}, &events).ok());
  ASSERT_EQ(events.events_size(), 1);
  EXPECT_EQ(events.events(0).reason(), "QUOTA_EXCEEDED");
  EXPECT_EQ(events.events(0).object(), "tenants/red/pools/p1");
  EXPECT_EQ(events.events(0).message(), "limit of qps reached");
  EXPECT_EQ(events.events(0).count(), 5u);
  EXPECT_EQ(events.events(0).last_time().seconds() - events.events(0).first_time().seconds(), 1);
}

TEST_F(StateServiceTest, ListQps_Paged_ReturnsEachRowOnceInOrder) {
  source_.state.qps.clear();
  for (uint32_t i = 0; i < 2503; ++i) {
    session::QpRow row;
    row.session = 1 + i % 3;
    row.qpn = 2 + i * 7919 % 100003;
    source_.state.qps.push_back(row);
  }
  gateway::v1::ListQpsRequest request;
  std::set<std::string> seen;
  std::pair<uint32_t, uint32_t> last{0, 0};
  int pages = 0;
  do {
    request.set_page_size(pages == 0 ? 0 : 999999);  // the default, then more than the maximum
    gateway::v1::ListQpsResponse page;
    ASSERT_TRUE(stub_->ListQps(Soon().get(), request, &page).ok());
    EXPECT_EQ(page.qps_size(), pages == 0 ? 100 : pages < 3 ? 1000 : 403);
    for (const auto& qp : page.qps()) {
      EXPECT_TRUE(seen.insert(qp.name()).second) << qp.name();
      EXPECT_LT(last, std::pair(qp.session(), qp.qpn()));
      last = {qp.session(), qp.qpn()};
    }
    request.set_page_token(page.next_page_token());
    ASSERT_LT(++pages, 10);
  } while (!request.page_token().empty());
  EXPECT_EQ(seen.size(), 2503u);
}

TEST_F(StateServiceTest, ListQps_RowsLeaveBetweenPages_NoneComesTwice) {
  gateway::v1::ListQpsRequest request;
  request.set_page_size(1);
  gateway::v1::ListQpsResponse page;
  ASSERT_TRUE(stub_->ListQps(Soon().get(), request, &page).ok());
  source_.state.qps.erase(source_.state.qps.begin() + 1);  // the row just returned
  request.set_page_token(page.next_page_token());
  gateway::v1::ListQpsResponse rest;
  ASSERT_TRUE(stub_->ListQps(Soon().get(), request, &rest).ok());
  ASSERT_EQ(rest.qps_size(), 1);
  EXPECT_EQ(rest.qps(0).qpn(), 0x0412ABu);
  EXPECT_EQ(rest.next_page_token(), "");
}

TEST_F(StateServiceTest, Lists_ForeignTokenOrSize_Refused) {
  gateway::v1::ListQpsRequest request;
  request.set_page_size(1);
  gateway::v1::ListQpsResponse page;
  ASSERT_TRUE(stub_->ListQps(Soon().get(), request, &page).ok());
  const std::string good = page.next_page_token();
  ASSERT_NE(good, "");
  for (const std::string& bad :
       {good + "0", good.substr(1), std::string("x"), "q" + std::string(16, 'z'),
        "q-" + std::string(15, '1'), "m" + good.substr(1)}) {
    request.set_page_token(bad);
    const grpc::Status status = stub_->ListQps(Soon().get(), request, &page);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad;
    EXPECT_EQ(status.error_message(), "page_token is not one that this list returned");
  }
  gateway::v1::ListMrsRequest mrs;
  mrs.set_page_token(good);
  gateway::v1::ListMrsResponse mrs_page;
  EXPECT_EQ(stub_->ListMrs(Soon().get(), mrs, &mrs_page).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_page_token("");
  request.set_page_size(-1);
  EXPECT_EQ(stub_->ListQps(Soon().get(), request, &page).error_message(),
            "page_size must not be negative");
}

TEST_F(StateServiceTest, GetCounters_ListsAllByWorker) {
  gateway::v1::GetCountersResponse counters;
  ASSERT_TRUE(stub_->GetCounters(Soon().get(), {}, &counters).ok());
  EXPECT_EQ(counters.workers_size(), 2);
  ASSERT_EQ(static_cast<size_t>(counters.counters_size()), metrics::AllCounters().size());
  EXPECT_EQ(counters.counters(0).name(), "rx_packets");
  EXPECT_EQ(counters.counters(3).name(), "tx_bytes");
  EXPECT_EQ(counters.counters(3).values(0), 3u);
  EXPECT_EQ(counters.counters(3).values(1), 103u);
  ASSERT_EQ(static_cast<size_t>(counters.drops_size()), metrics::kDropReasonCount - 1);
  for (const auto& drop : counters.drops()) {
    EXPECT_TRUE(drop.side() == "peer" || drop.side() == "local") << drop.reason();
    EXPECT_EQ(drop.values_size(), 2);
    if (drop.reason() == "bad_icrc") {
      EXPECT_EQ(drop.values(1), 8u);
    }
  }
}

TEST_F(StateServiceTest, GetCounters_ListsPortsByWorker) {
  gateway::v1::GetCountersResponse counters;
  ASSERT_TRUE(stub_->GetCounters(Soon().get(), {}, &counters).ok());
  ASSERT_EQ(static_cast<size_t>(counters.port_counters_size()), std::size(port::kPortCounters));
  EXPECT_EQ(counters.port_counters(0).port(), "port0");
  EXPECT_EQ(counters.port_counters(0).name(), "tx_packets");
  EXPECT_EQ(counters.port_counters(0).values(0), 10u);
  EXPECT_EQ(counters.port_counters(0).values(1), 11u);
}

TEST_F(StateServiceTest, Call_WithoutOrWithLongDeadline_Refused) {
  types::v1::GatewayStatus status;
  grpc::ClientContext none;
  EXPECT_EQ(stub_->GetStatus(&none, {}, &status).error_message(),
            "set a deadline of at most 60 s for this call");
  EXPECT_EQ(stub_->GetStatus(Within(std::chrono::minutes(5)).get(), {}, &status).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(stub_->GetStatus(Within(std::chrono::seconds(60)).get(), {}, &status).ok());
}

TEST_F(StateServiceTest, Call_SourceSilent_EndsAtItsDeadlineAndDelaysNobody) {
  source_.answers = false;
  types::v1::GatewayStatus status;
  EXPECT_EQ(stub_->GetStatus(Within(std::chrono::milliseconds(50)).get(), {}, &status).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  source_.answers = true;
  EXPECT_TRUE(stub_->GetStatus(Soon().get(), {}, &status).ok());
  source_.AnswerAll();  // late; the server still waits for it when it stops
}

TEST_F(StateServiceTest, Socket_HasTheModeAndGoesAway) {
  struct stat info {};
  ASSERT_EQ(stat(directory_.File("grpc.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  server_.Stop();
  EXPECT_NE(stat(directory_.File("grpc.sock").c_str(), &info), 0);
}

TEST_F(StateServiceTest, SecondServer_OnTheSameSocket_Refused) {
  GrpcServer second(identity_, readiness_, source_);
  const Status status = second.Start({directory_.File("grpc.sock")});
  EXPECT_EQ(status.error(), EADDRINUSE);
  EXPECT_EQ(status.text(), "gRPC socket " + directory_.File("grpc.sock") +
                               ": another process serves it; stop that one, or set runtime_dir or "
                               "grpc_socket.path");
  types::v1::GatewayStatus answer;
  EXPECT_TRUE(stub_->GetStatus(Soon().get(), {}, &answer).ok());
}

TEST(GrpcServer, PlaceIsWrong_SaysWhy) {
  const TestDirectory directory;
  GatewayIdentity identity = TestIdentity();
  Readiness readiness;
  FakeSource source;
  GrpcServer server(identity, readiness, source);
  EXPECT_EQ(server.Start({"/nonexistent/grpc.sock"}).text(),
            "gRPC socket /nonexistent/grpc.sock: bind: No such file or directory; create the "
            "directory, or set runtime_dir or grpc_socket.path");
  std::ofstream(directory.File("file")) << "precious";
  EXPECT_EQ(server.Start({directory.File("file")}).error(), EEXIST);
  std::string content;
  std::ifstream(directory.File("file")) >> content;
  EXPECT_EQ(content, "precious");
}

TEST(GrpcServer, StaleSocket_IsReplaced) {
  const TestDirectory directory;
  const std::string path = directory.File("grpc.sock");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);  // as a killed daemon leaves it
  GatewayIdentity identity = TestIdentity();
  Readiness readiness;
  FakeSource source;
  GrpcServer server(identity, readiness, source);
  EXPECT_TRUE(server.Start({path}).ok());
}

}  // namespace
}  // namespace rocegw::service
