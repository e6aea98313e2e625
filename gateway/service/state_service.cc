// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/state_service.h"

#include <string>
#include <utility>

#include "gateway/service/call_rules.h"
#include "gateway/service/paging.h"
#include "gateway/service/state_messages.h"

namespace rocegw::service {
grpc::ServerUnaryReactor* StateService::Answer(grpc::CallbackServerContext* context,
                                               const session::StateQuery& query,
                                               std::function<void(session::StateSnapshot&)> fill) {
  const grpc::Status deadline = CheckDeadline(*context);
  if (!deadline.ok()) return Refuse(context, deadline);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  source_.Snapshot(query, [reactor, fill = std::move(fill)](session::StateSnapshot snapshot) {
    if (!snapshot.unanswered.empty())
      return reactor->Finish({grpc::StatusCode::UNAVAILABLE, snapshot.unanswered});
    fill(snapshot);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

template <typename Request, typename Response, typename Row, typename Key, typename Fill>
grpc::ServerUnaryReactor* StateService::List(grpc::CallbackServerContext* context,
                                             const Request& request, Response* response, char list,
                                             const session::StateQuery& query,
                                             std::vector<Row> session::StateSnapshot::*rows,
                                             Key key, Fill fill) {
  const auto page_size = EffectivePageSize(request.page_size());
  if (!page_size) {
    return Refuse(context, {grpc::StatusCode::INVALID_ARGUMENT, "page_size must not be negative"});
  }
  const auto position = ReadPageToken(list, request.page_token());
  if (!position) {
    return Refuse(context, {grpc::StatusCode::INVALID_ARGUMENT,
                            "page_token is not one that this list returned"});
  }
  return Answer(context, query, [=, this](session::StateSnapshot& snapshot) {
    std::vector<Row>& page = snapshot.*rows;
    const bool more = CutPage(page, *position, *page_size, key);
    const std::string parent = "gateways/" + identity_.name;
    for (const Row& row : page) fill(parent, row, *response);
    if (more) response->set_next_page_token(MakePageToken(list, key(page.back())));
    FillTime(identity_.now_ns(), *response->mutable_read_time());
  });
}

grpc::ServerUnaryReactor* StateService::GetStatus(grpc::CallbackServerContext* context,
                                                  const gateway::v1::GetStatusRequest*,
                                                  types::v1::GatewayStatus* response) {
  return Answer(context, {.pools = true, .outstanding = true},
                [this, response](session::StateSnapshot& snapshot) {
                  FillStatus(identity_, readiness_.reason(), snapshot, *response);
                });
}

grpc::ServerUnaryReactor* StateService::ListSessions(
    grpc::CallbackServerContext* context, const gateway::v1::ListSessionsRequest* request,
    gateway::v1::ListSessionsResponse* response) {
  return List(
      context, *request, response, 's', {.sessions = true}, &session::StateSnapshot::sessions,
      [](const session::SessionRow& row) { return uint64_t{row.id}; },
      [](const std::string& parent, const session::SessionRow& row,
         gateway::v1::ListSessionsResponse& out) {
        FillSession(parent, row, *out.add_sessions());
      });
}

grpc::ServerUnaryReactor* StateService::ListQps(grpc::CallbackServerContext* context,
                                                const gateway::v1::ListQpsRequest* request,
                                                gateway::v1::ListQpsResponse* response) {
  return List(
      context, *request, response, 'q', {.qps = true, .qpn = request->qpn()},
      &session::StateSnapshot::qps,
      [](const session::QpRow& row) { return uint64_t{row.session} << 32 | row.qpn; },
      [](const std::string& parent, const session::QpRow& row, gateway::v1::ListQpsResponse& out) {
        FillQp(parent, row, *out.add_qps());
      });
}

grpc::ServerUnaryReactor* StateService::ListConnections(
    grpc::CallbackServerContext* context, const gateway::v1::ListConnectionsRequest* request,
    gateway::v1::ListConnectionsResponse* response) {
  return List(
      context, *request, response, 'c', {.connections = true}, &session::StateSnapshot::connections,
      [](const session::ConnectionRow& row) { return uint64_t{row.local_comm_id}; },
      [](const std::string& parent, const session::ConnectionRow& row,
         gateway::v1::ListConnectionsResponse& out) {
        FillConnection(parent, row, *out.add_connections());
      });
}

grpc::ServerUnaryReactor* StateService::ListChannels(
    grpc::CallbackServerContext* context, const gateway::v1::ListChannelsRequest* request,
    gateway::v1::ListChannelsResponse* response) {
  return List(
      context, *request, response, 'h', {.channels = true}, &session::StateSnapshot::channels,
      [](const session::ChannelRow& row) { return uint64_t{row.number}; },
      [](const std::string& parent, const session::ChannelRow& row,
         gateway::v1::ListChannelsResponse& out) {
        FillChannel(parent, row, *out.add_channels());
      });
}

grpc::ServerUnaryReactor* StateService::ListMrs(grpc::CallbackServerContext* context,
                                                const gateway::v1::ListMrsRequest* request,
                                                gateway::v1::ListMrsResponse* response) {
  return List(
      context, *request, response, 'm', {.mrs = true}, &session::StateSnapshot::mrs,
      // Memory windows have their own handle numbers, so they follow the regions.
      [](const session::MrRow& row) {
        return uint64_t{row.session} << 32 | uint64_t{row.window != 0} << 31 | row.handle;
      },
      [](const std::string& parent, const session::MrRow& row, gateway::v1::ListMrsResponse& out) {
        FillMr(parent, row, *out.add_mrs());
      });
}

grpc::ServerUnaryReactor* StateService::ListSrqs(grpc::CallbackServerContext* context,
                                                 const gateway::v1::ListSrqsRequest* request,
                                                 gateway::v1::ListSrqsResponse* response) {
  return List(
      context, *request, response, 'r', {.srqs = true}, &session::StateSnapshot::srqs,
      [](const session::SrqRow& row) { return uint64_t{row.session} << 32 | row.handle; },
      [](const std::string& parent, const session::SrqRow& row,
         gateway::v1::ListSrqsResponse& out) { FillSrq(parent, row, *out.add_srqs()); });
}

grpc::ServerUnaryReactor* StateService::ListPools(grpc::CallbackServerContext* context,
                                                  const gateway::v1::ListPoolsRequest* request,
                                                  gateway::v1::ListPoolsResponse* response) {
  return List(
      context, *request, response, 'p', {.pools = true}, &session::StateSnapshot::pools,
      [](const session::PoolRow& row) { return row.id; },
      [](const std::string&, const session::PoolRow& row, gateway::v1::ListPoolsResponse& out) {
        FillPool(row, *out.add_pools());
      });
}

grpc::ServerUnaryReactor* StateService::ListEvents(grpc::CallbackServerContext* context,
                                                   const gateway::v1::ListEventsRequest* request,
                                                   gateway::v1::ListEventsResponse* response) {
  return List(
      context, *request, response, 'e', {.events = true}, &session::StateSnapshot::events,
      [](const session::EventRow& row) { return row.id; },
      [](const std::string&, const session::EventRow& row, gateway::v1::ListEventsResponse& out) {
        FillEvent(row, *out.add_events());
      });
}

grpc::ServerUnaryReactor* StateService::GetCounters(grpc::CallbackServerContext* context,
                                                    const gateway::v1::GetCountersRequest*,
                                                    gateway::v1::GetCountersResponse* response) {
  return Answer(context, {}, [this, response](session::StateSnapshot& snapshot) {
    FillCounters(snapshot, *response);
    FillTime(identity_.now_ns(), *response->mutable_read_time());
  });
}

}  // namespace rocegw::service
