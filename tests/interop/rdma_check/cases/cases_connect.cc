// SPDX-License-Identifier: Apache-2.0
// The connection manager itself: refusals, both ends of a disconnect, many connections one after
// the other and at once.
#include <string>
#include <vector>

#include "tests/interop/rdma_check/cases/cases.h"
#include "tests/interop/rdma_check/cm_channel.h"
#include "tests/interop/rdma_check/connection.h"
#include "tests/interop/rdma_check/failure.h"
#include "tests/interop/rdma_check/transfer.h"

namespace rocegw::interop {
namespace {

// Reject reasons of the CM (IBTA 12.6.7.2).
constexpr int kNoListener = 8;
constexpr int kConsumerReject = 28;
constexpr size_t kRejectPrivateData = 148;

struct SmallQp {
  explicit SmallQp(rdma_cm_id* id, bool use_events)
      : pd(ibv_alloc_pd(id->verbs)), cq(id->verbs, 8, use_events) {
    CheckErrno(pd != nullptr, "ibv_alloc_pd");
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.cq();
    init.qp_type = IBV_QPT_RC;
    init.cap = {.max_send_wr = 2,
                .max_recv_wr = 2,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
    CheckErrno(rdma_create_qp(id, pd.get(), &init) == 0, "rdma_create_qp");
    owner = id;
  }
  ~SmallQp() { rdma_destroy_qp(owner); }
  SmallQp(const SmallQp&) = delete;
  SmallQp& operator=(const SmallQp&) = delete;

  rdma_cm_id* owner;
  Owned<ibv_pd> pd;
  Completions cq;
};

rdma_conn_param Parameters() {
  rdma_conn_param param{};
  param.responder_resources = 1;
  param.initiator_depth = 1;
  param.retry_count = 7;
  param.rnr_retry_count = 7;
  return param;
}

void Reject(Session& session) {
  CmChannel channel;
  std::string reason(kRejectPrivateData, '\0');
  FillPattern(session.settings.seed, 0, reinterpret_cast<uint8_t*>(reason.data()), reason.size());
  if (!session.is_client) {
    const OwnedId listener = CreateId(channel);
    const uint16_t port = ListenAnyPort(listener.get(), session.control.LocalAddress());
    session.control.Send("data", std::to_string(port));
    const CmEvent request = channel.Expect(RDMA_CM_EVENT_CONNECT_REQUEST, "listening");
    const OwnedId id(request.id);
    CheckErrno(rdma_reject(id.get(), reason.data(), static_cast<uint8_t>(reason.size())) == 0,
               "rdma_reject");
    session.control.Sync("rejected");
    return;
  }
  const auto port = static_cast<uint16_t>(std::stoul(session.control.Expect("data")));
  const OwnedId id = CreateId(channel);
  Resolve(channel, id.get(), session.control.PeerAddress(), port);
  const SmallQp qp(id.get(), session.settings.use_events);
  rdma_conn_param param = Parameters();
  CheckErrno(rdma_connect(id.get(), &param) == 0, "rdma_connect");
  const CmEvent event = channel.Expect(RDMA_CM_EVENT_REJECTED, "connecting to one who refuses");
  Check(event.status == kConsumerReject, "reject reason is ", event.status);
  Check(event.private_data.compare(0, reason.size(), reason) == 0,
        "private data of the reject differs");
  session.control.Sync("rejected");
}

void NoListener(Session& session, bool by_client) {
  CmChannel channel;
  // A port that was free a moment ago on the peer's side.
  uint16_t port = 0;
  if (session.is_client != by_client) {
    const OwnedId listener = CreateId(channel);
    port = ListenAnyPort(listener.get(), session.control.LocalAddress());
  }
  port = static_cast<uint16_t>(
      std::max(std::stoul(session.control.Exchange(std::to_string(port))), 0UL));
  if (session.is_client == by_client) {
    const OwnedId id = CreateId(channel);
    Resolve(channel, id.get(), session.control.PeerAddress(), port);
    const SmallQp qp(id.get(), session.settings.use_events);
    rdma_conn_param param = Parameters();
    CheckErrno(rdma_connect(id.get(), &param) == 0, "rdma_connect");
    const CmEvent event = channel.Expect(RDMA_CM_EVENT_REJECTED, "connecting to no listener");
    Check(event.status == kNoListener, "reject reason is ", event.status);
  }
  session.control.Sync("refused");
}

void Disconnect(Session& session, bool by_client) {
  Connection connection(session, {.qps = session.settings.qps});
  const bool active = session.is_client == by_client;
  Plan plan(session.settings.seed);
  // A receive is posted on the side that is disconnected: it must come back flushed.
  if (!active) PostReceive(connection, 0, plan.Add(Verb::kSend, by_client, 64).remote, 1);
  connection.Close(session, by_client);
  if (!active) {
    const ibv_wc wc = connection.receive().WaitOne("receive of a disconnected queue pair");
    Check(wc.status == IBV_WC_WR_FLUSH_ERR,
          "receive of a disconnected queue pair: ", ibv_wc_status_str(wc.status));
  }
}

void Cycles(Session& session) {
  for (uint32_t i = 0; i < 20; ++i) {
    Connection connection(session, {});
    Plan plan(session.settings.seed + i);
    plan.Add(Verb::kSend, i % 2 == 0, 100 + i);
    RunTransfers(session, connection, plan.operations());
    connection.Close(session, i % 3 != 0);
  }
}

// Many ids on one event channel, all connecting at the same time.
void AtOnce(Session& session) {
  constexpr uint32_t kIds = 16;
  CmChannel channel;
  std::vector<OwnedId> ids;
  std::vector<std::unique_ptr<SmallQp>> qps;
  rdma_conn_param param = Parameters();
  const bool use_events = session.settings.use_events;
  uint32_t up = 0;
  if (!session.is_client) {
    const OwnedId listener = CreateId(channel);
    const uint16_t port = ListenAnyPort(listener.get(), session.control.LocalAddress());
    session.control.Send("data", std::to_string(port));
    while (up < kIds) {
      const CmEvent event = channel.Wait("connect requests");
      if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
        ids.emplace_back(event.id);
        qps.push_back(std::make_unique<SmallQp>(event.id, use_events));
        CheckErrno(rdma_accept(event.id, &param) == 0, "rdma_accept");
      } else {
        Check(event.type == RDMA_CM_EVENT_ESTABLISHED, "CM event ", rdma_event_str(event.type));
        ++up;
      }
    }
  } else {
    const auto port = static_cast<uint16_t>(std::stoul(session.control.Expect("data")));
    sockaddr_storage peer = session.control.PeerAddress();
    reinterpret_cast<sockaddr_in&>(peer).sin_port = htons(port);
    for (uint32_t i = 0; i < kIds; ++i) {
      ids.push_back(CreateId(channel));
      CheckErrno(rdma_resolve_addr(ids.back().get(), nullptr, reinterpret_cast<sockaddr*>(&peer),
                                   kCmTimeoutMs) == 0,
                 "rdma_resolve_addr");
    }
    while (up < kIds) {
      const CmEvent event = channel.Wait("connecting many");
      switch (event.type) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
          CheckErrno(rdma_resolve_route(event.id, kCmTimeoutMs) == 0, "rdma_resolve_route");
          break;
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
          qps.push_back(std::make_unique<SmallQp>(event.id, use_events));
          CheckErrno(rdma_connect(event.id, &param) == 0, "rdma_connect");
          break;
        case RDMA_CM_EVENT_ESTABLISHED:
          ++up;
          break;
        default:
          Fail("CM event ", rdma_event_str(event.type), " status ", event.status);
      }
    }
  }
  session.control.Sync("all up");
  if (session.is_client) {
    for (const OwnedId& id : ids) CheckErrno(rdma_disconnect(id.get()) == 0, "rdma_disconnect");
  }
  uint32_t down = 0;
  while (down < kIds) {
    const CmEvent event = channel.Wait("disconnecting many");
    if (event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT) continue;
    Check(event.type == RDMA_CM_EVENT_DISCONNECTED, "CM event ", rdma_event_str(event.type));
    if (!session.is_client) rdma_disconnect(event.id);
    ++down;
  }
  session.control.Sync("all down");
  qps.clear();
}

}  // namespace

std::vector<Case> ConnectCases() {
  return {{"connect.reject", false, Needs::kCm, [](Session& s, bool) { Reject(s); }},
          {"connect.no_listener", true, Needs::kCm, NoListener},
          {"connect.disconnect", true, Needs::kCm, Disconnect},
          {"connect.cycles", false, Needs::kAnything, [](Session& s, bool) { Cycles(s); }},
          {"connect.at_once", false, Needs::kCm, [](Session& s, bool) { AtOnce(s); }}};
}

}  // namespace rocegw::interop
