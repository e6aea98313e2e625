// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/client/state_client.h"

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "proto/tunnel/tunnel_calls.h"
#include "rocegw/admin/v1/gateways.pb.h"

namespace rocegw::cli {
namespace {

using google::protobuf::Message;

constexpr int32_t kPageSize = 1000;
constexpr char kLocal[] = "/rocegw.gateway.v1.StateService/";
constexpr char kFleet[] = "/rocegw.admin.v1.Gateways/";

}  // namespace

CallResult StateClient::GetStatus(types::v1::GatewayStatus& out) {
  if (gateway_.empty()) {
    return rpc_.Call(kLocal + std::string("GetStatus"), gateway::v1::GetStatusRequest(), out);
  }
  admin::v1::GetGatewayStatusRequest request;
  request.set_name(gateway_);
  return rpc_.Call(kFleet + std::string("GetGatewayStatus"), request, out);
}

CallResult StateClient::List(Message& list) {
  const tunnel::TunnelCall& call = *tunnel::CallWith(list.GetDescriptor());
  const std::string objects = std::string(call.method->name()).substr(std::strlen("List"));
  const auto* const token = list.GetDescriptor()->FindFieldByName("next_page_token");
  const auto* const read_time = list.GetDescriptor()->FindFieldByName("read_time");
  const auto read = [&](const std::string& method, auto request) {
    request.set_page_size(kPageSize);
    do {
      const std::unique_ptr<Message> page(list.New());
      CallResult result = rpc_.Call(method, request, *page);
      if (!result.ok()) return result;
      request.set_page_token(page->GetReflection()->GetString(*page, token));
      // Rows are appended; the time is that of the last page.
      list.GetReflection()->ClearField(&list, read_time);
      list.MergeFrom(*page);
    } while (!request.page_token().empty());
    list.GetReflection()->ClearField(&list, token);
    return CallResult();
  };
  // All list requests of the gateway have the same fields with the same numbers.
  if (gateway_.empty()) return read(call.Path(), gateway::v1::ListQpsRequest());
  admin::v1::ListGatewayObjectsRequest request;
  request.set_parent(gateway_);
  return read(kFleet + std::string("ListGateway") + objects, request);
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
