// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/state_client.h"

#include <cstdint>

#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::cli {
namespace {

constexpr int32_t kPageSize = 1000;
constexpr char kLocal[] = "/rocegw.gateway.v1.StateService/";
constexpr char kFleet[] = "/rocegw.admin.v1.Gateways/";

}  // namespace

template <typename Response, typename MoveRows>
CallResult StateClient::ReadPages(const char* list, Response& all, MoveRows move_rows) {
  const auto read = [&](const std::string& method, auto request) {
    request.set_page_size(kPageSize);
    do {
      Response page;
      CallResult result = rpc_.Call(method, request, page);
      if (!result.ok()) return result;
      move_rows(page, all);
      *all.mutable_read_time() = page.read_time();
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    return CallResult();
  };
  // All list requests of the gateway have the same fields with the same numbers.
  if (gateway_.empty()) {
    return read(kLocal + std::string("List") + list, gateway::v1::ListQpsRequest());
  }
  admin::v1::ListGatewayObjectsRequest request;
  request.set_parent(gateway_);
  return read(kFleet + std::string("ListGateway") + list, request);
}

CallResult StateClient::GetStatus(types::v1::GatewayStatus& out) {
  if (gateway_.empty()) {
    return rpc_.Call(kLocal + std::string("GetStatus"), gateway::v1::GetStatusRequest(), out);
  }
  admin::v1::GetGatewayStatusRequest request;
  request.set_name(gateway_);
  return rpc_.Call(kFleet + std::string("GetGatewayStatus"), request, out);
}

CallResult StateClient::ListSessions(gateway::v1::ListSessionsResponse& out) {
  return ReadPages("Sessions", out, [](auto& page, auto& all) {
    all.mutable_sessions()->MergeFrom(page.sessions());
  });
}

CallResult StateClient::ListQps(gateway::v1::ListQpsResponse& out) {
  return ReadPages("Qps", out,
                   [](auto& page, auto& all) { all.mutable_qps()->MergeFrom(page.qps()); });
}

CallResult StateClient::ListConnections(gateway::v1::ListConnectionsResponse& out) {
  return ReadPages("Connections", out, [](auto& page, auto& all) {
    all.mutable_connections()->MergeFrom(page.connections());
  });
}

CallResult StateClient::ListChannels(gateway::v1::ListChannelsResponse& out) {
  return ReadPages("Channels", out, [](auto& page, auto& all) {
    all.mutable_channels()->MergeFrom(page.channels());
  });
}

CallResult StateClient::ListMrs(gateway::v1::ListMrsResponse& out) {
  return ReadPages("Mrs", out,
                   [](auto& page, auto& all) { all.mutable_mrs()->MergeFrom(page.mrs()); });
}

CallResult StateClient::ListSrqs(gateway::v1::ListSrqsResponse& out) {
  return ReadPages("Srqs", out,
                   [](auto& page, auto& all) { all.mutable_srqs()->MergeFrom(page.srqs()); });
}

CallResult StateClient::ListPools(gateway::v1::ListPoolsResponse& out) {
  return ReadPages("Pools", out,
                   [](auto& page, auto& all) { all.mutable_pools()->MergeFrom(page.pools()); });
}

CallResult StateClient::ListEvents(gateway::v1::ListEventsResponse& out) {
  return ReadPages("Events", out,
                   [](auto& page, auto& all) { all.mutable_events()->MergeFrom(page.events()); });
}

CallResult StateClient::GetCounters(gateway::v1::GetCountersResponse& out) {
  if (gateway_.empty()) {
    return rpc_.Call(kLocal + std::string("GetCounters"), gateway::v1::GetCountersRequest(), out);
  }
  admin::v1::GetGatewayCountersRequest request;
  request.set_name(gateway_);
  return rpc_.Call(kFleet + std::string("GetGatewayCounters"), request, out);
}

CallResult StateClient::Diagnose(gateway::v1::DiagnoseResponse& out) {
  if (gateway_.empty()) {
    return rpc_.Call("/rocegw.gateway.v1.DebugService/Diagnose", gateway::v1::DiagnoseRequest(),
                     out);
  }
  admin::v1::DiagnoseGatewayRequest request;
  request.set_name(gateway_);
  return rpc_.Call(kFleet + std::string("DiagnoseGateway"), request, out);
}

}  // namespace rocegw::cli
