// SPDX-License-Identifier: Apache-2.0
// A connection within the reserves of both pools allocates nothing in either gateway, from its id
// or the arriving request to the established state: allocations are counted while the gateways run.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "tests/support/allocation_counts.h"
#include "tests/support/session/worker_host.h"

namespace rocegw::testing {
namespace {

constexpr char kPool[] = "tenants/t/pools/p";
constexpr uint32_t kReady = 24;
constexpr uint32_t kTcp = 0x0106;
constexpr uint16_t kPort = 7000;
enum Event : uint32_t {
  kAddrResolved = 0,
  kRouteResolved = 2,
  kConnectRequest = 4,
  kConnectResponse = 5,
  kEstablished = 9,
  kDisconnected = 10,
  kNoEvent = 1000,
};

rocegw_sockaddr AddressOf(int side) {
  rocegw_sockaddr address{};
  address.family = AF_INET;
  address.port = kPort;
  std::memcpy(address.address, WorkerHost::GidOf(side).bytes.data() + 12, 4);
  return address;
}

session::Options OptionsOf(bool channels) {
  session::Options options;
  options.gateways.channels = channels;
  // The refill is not counted here.
  options.refill_after = Seconds(3600);
  return options;
}

// Two gateways, each with a pool that has a reserve, driven by hand in one thread.
struct Gateways {
  Gateways(uint32_t ready_qps, bool channels)
      : workers(channels ? 1 : 2),
        link(WorkerHost::LinkFor(workers)),
        hosts{{workers, OptionsOf(channels), false, link, 0, LookupOf(0)},
              {workers, OptionsOf(channels), false, link, 1, LookupOf(1)}} {
    tenant::PoolSettings pool;
    pool.name = kPool;
    pool.trusted = true;
    pool.ready_qps = ready_qps;
    for (WorkerHost& host : hosts) host.SetPool(pool);
    hosts[0].TurnsWith(&hosts[1]);
    hosts[1].TurnsWith(&hosts[0]);
    FillUp();
  }
  // Destroyed one after the other.
  ~Gateways() {
    for (WorkerHost& host : hosts) host.TurnsWith(nullptr);
  }
  static session::SourceLookup LookupOf(int side) {
    return [side](const wire::Gid&, uint32_t) -> StatusOr<wire::Gid> {
      return WorkerHost::GidOf(side);
    };
  }
  session::ReadyReserve* ReserveOf(int side) {
    session::Services& services = hosts[side].server->services();
    return hosts[side].server->reserves().Of(*services.pools.FindPool(kPool)).get();
  }
  void FillUp() {
    Settle();
    for (int side = 0; side < 2; ++side) {
      session::ReadyReserve* const reserve = ReserveOf(side);
      while ((reserve != nullptr && reserve->Refill()) || hosts[side].server->cm().Refill())
        hosts[side].Settle();
    }
  }
  // Runs until all answers to all datagrams are handled.
  void Settle() {
    for (int i = 0; i < 4; ++i) hosts[0].Settle();
  }

  // Each pair of workers has a channel; one connection opens one.
  const size_t workers;
  std::shared_ptr<port::PairLink> link;
  WorkerHost hosts[2];
};

// Program of one gateway. Allocations of the gateways are counted, those of the test are not.
class Program {
 public:
  Program(Gateways& gateways, int side) : program_(gateways.hosts[side].Begin(kPool)) {
    client_ = std::make_unique<TestClient>(
        [&gateways] {
          AllocationCounts::Start();
          gateways.Settle();
          AllocationCounts::Stop();
        },
        program_.client->Release());
    channel_ = Make<rocegw_object_request>(ROCEGW_MSG_CM_CREATE_CHANNEL, [](auto&) {});
    events_ = std::move(client_->received_fd);
  }

  uint32_t CreateId() {
    return Make<rocegw_cm_create_id>(ROCEGW_MSG_CM_CREATE_ID, [&](auto& request) {
      request.channel = channel_;
      request.port_space = kTcp;
    });
  }
  void Listen(int side) {
    const uint32_t id = CreateId();
    auto bind = TestClient::Request<rocegw_cm_bind>(ROCEGW_MSG_CM_BIND);
    bind.id = id;
    bind.address = AddressOf(side);
    Do<rocegw_cm_id_reply>(bind);
    auto listen = TestClient::Request<rocegw_cm_listen>(ROCEGW_MSG_CM_LISTEN);
    listen.id = id;
    Do<rocegw_cm_id_reply>(listen);
  }
  uint32_t Resolve(int side) {
    const uint32_t id = CreateId();
    auto address = TestClient::Request<rocegw_cm_resolve_addr>(ROCEGW_MSG_CM_RESOLVE_ADDR);
    address.id = id;
    address.timeout_ms = 2000;
    address.destination = AddressOf(side);
    Do<rocegw_cm_id_reply>(address);
    EXPECT_EQ(Next().type, kAddrResolved);
    auto route = TestClient::Request<rocegw_cm_resolve_route>(ROCEGW_MSG_CM_RESOLVE_ROUTE);
    route.id = id;
    Do<rocegw_cm_id_reply>(route);
    EXPECT_EQ(Next().type, kRouteResolved);
    return id;
  }
  rocegw_qp_reply CreateQpFor(uint32_t id) {
    auto create = TestClient::QpRequest(program_.pd, program_.cq);
    create.cm_id = id;
    return Do<rocegw_qp_reply>(create);
  }
  void Join(uint32_t type, uint32_t id, uint32_t qpn) {
    auto request = TestClient::Request<rocegw_cm_connect>(type);
    request.id = id;
    request.with_qp = type == ROCEGW_MSG_CM_ACCEPT ? 1 : 0;
    request.param.qpn = qpn;
    request.param.responder_resources = request.param.initiator_depth = 1;
    request.param.retry_count = request.param.rnr_retry_count = 7;
    request.param.private_length = 56;
    Do<rocegw_object_reply>(request);
  }
  void Step(uint32_t type, uint32_t id) {
    auto step = TestClient::Request<rocegw_cm_step>(type);
    step.id = id;
    step.with_qp = 1;
    Do<rocegw_object_reply>(step);
  }
  void Drop(uint32_t id, uint32_t qp) {
    client_->Object(ROCEGW_MSG_DESTROY_QP, qp);
    EXPECT_EQ(client_->error(), 0);
    client_->Object(ROCEGW_MSG_CM_DESTROY_ID, id);
    EXPECT_EQ(client_->error(), 0);
  }
  rocegw_cm_event Next() {
    rocegw_cm_event event{};
    event.type = kNoEvent;
    (void)!::recv(events_.get(), &event, sizeof event, MSG_DONTWAIT);
    return event;
  }
  bool IsReady(uint32_t qp) {
    auto query = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
    query.handle = qp;
    return Do<rocegw_query_qp_reply>(query).attr.qp_state ==
           static_cast<uint32_t>(verbs::QpState::kRts);
  }

 private:
  template <typename Reply, typename Request>
  Reply Do(const Request& request) {
    const Reply reply = client_->Call<Reply>(request);
    EXPECT_EQ(client_->error(), 0) << "request " << request.header.type;
    return reply;
  }
  template <typename Request, typename Fill>
  uint32_t Make(uint32_t type, Fill fill) {
    auto request = TestClient::Request<Request>(type);
    fill(request);
    return Do<rocegw_object_reply>(request).handle;
  }

  WorkerHost::Program program_;
  std::unique_ptr<TestClient> client_;
  uint32_t channel_ = 0;
  UniqueFd events_;
};

class ConnectAllocations : public ::testing::TestWithParam<bool> {
 protected:
  struct Connection {
    uint32_t ids[2];
    uint32_t qps[2];
  };
  void Start(uint32_t ready_qps) {
    gateways_.emplace(ready_qps, GetParam());
    // The gateways have already discovered each other.
    StartPrograms();
    Disconnect(Connect());
    StartPrograms();
    gateways_->FillUp();
  }
  void StartPrograms() {
    client_.reset();
    server_.reset();
    gateways_->Settle();
    client_.emplace(*gateways_, 0);
    server_.emplace(*gateways_, 1);
    server_->Listen(1);
  }
  Connection Connect() {
    AllocationCounts::Reset();
    Connection made{};
    made.ids[0] = client_->Resolve(1);
    const auto active = client_->CreateQpFor(made.ids[0]);
    client_->Join(ROCEGW_MSG_CM_CONNECT, made.ids[0], active.qpn);
    const rocegw_cm_event request = server_->Next();
    EXPECT_EQ(request.type, kConnectRequest);
    made.ids[1] = request.id;
    const auto passive = server_->CreateQpFor(made.ids[1]);
    server_->Join(ROCEGW_MSG_CM_ACCEPT, made.ids[1], passive.qpn);
    EXPECT_EQ(client_->Next().type, kConnectResponse);
    client_->Step(ROCEGW_MSG_CM_ESTABLISH, made.ids[0]);
    EXPECT_EQ(server_->Next().type, kEstablished);
    counts_ = AllocationCounts::Read();
    made.qps[0] = active.handle;
    made.qps[1] = passive.handle;
    EXPECT_TRUE(client_->IsReady(made.qps[0]) && server_->IsReady(made.qps[1]));
    return made;
  }
  void Disconnect(const Connection& connection) {
    client_->Step(ROCEGW_MSG_CM_DISCONNECT, connection.ids[0]);
    EXPECT_EQ(server_->Next().type, kDisconnected);
    EXPECT_EQ(client_->Next().type, kDisconnected);
    client_->Drop(connection.ids[0], connection.qps[0]);
    server_->Drop(connection.ids[1], connection.qps[1]);
  }

  std::optional<Gateways> gateways_;
  std::optional<Program> client_;
  std::optional<Program> server_;
  AllocationCounts counts_;  // for the last connection
};

TEST_P(ConnectAllocations, WithinTheReserve_None) {
  Start(kReady);
  for (uint32_t i = 0; i < kReady; ++i) {
    Connect();
    EXPECT_EQ(counts_, AllocationCounts()) << i;
  }
  for (int side = 0; side < 2; ++side) EXPECT_EQ(gateways_->ReserveOf(side)->ready(), 0u);
}

TEST_P(ConnectAllocations, AgainAndAgain_None) {
  Start(4);
  for (int i = 0; i < 20; ++i) {
    const Connection made = Connect();
    EXPECT_EQ(counts_, AllocationCounts()) << i;
    Disconnect(made);
    gateways_->FillUp();
  }
}

TEST_P(ConnectAllocations, FirstOfANewProgram_None) {
  Start(4);
  for (int i = 0; i < 5; ++i) {
    StartPrograms();
    gateways_->FillUp();
    Connect();
    EXPECT_EQ(counts_, AllocationCounts()) << i;
  }
}

TEST_P(ConnectAllocations, BeyondTheReserve_Some) {
  Start(1);
  Connect();
  EXPECT_EQ(counts_, AllocationCounts());
  Connect();
  EXPECT_GT(counts_.allocations, 0u);
}

TEST_P(ConnectAllocations, WithoutReserve_Some) {
  Start(0);
  Connect();
  EXPECT_GT(counts_.allocations, 10u);
}

INSTANTIATE_TEST_SUITE_P(DataPaths, ConnectAllocations, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Channels" : "Native"; });

}  // namespace
}  // namespace rocegw::testing
