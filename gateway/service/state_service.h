// SPDX-License-Identifier: Apache-2.0
// gateway.v1.StateService on the callback API. Handlers ask the state source and return; the answer
// is built on the source's thread. Calls without a deadline, or with one beyond 60 s, are refused,
// so that a call without an answer ends by itself. Included by grpc_server.cc only: gRPC headers
// are heavy.
#pragma once

#include <functional>

#include "gateway/service/identity.h"
#include "gateway/service/sources/state_source.h"
#include "rocegw/gateway/v1/state.grpc.pb.h"

namespace rocegw::service {

class StateService final : public gateway::v1::StateService::CallbackService {
 public:
  // All arguments outlive the service.
  StateService(const GatewayIdentity& identity, const Readiness& readiness, StateSource& source)
      : identity_(identity), readiness_(readiness), source_(source) {}

  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const gateway::v1::GetStatusRequest* request,
                                      types::v1::GatewayStatus* response) override;
  grpc::ServerUnaryReactor* ListSessions(grpc::CallbackServerContext* context,
                                         const gateway::v1::ListSessionsRequest* request,
                                         gateway::v1::ListSessionsResponse* response) override;
  grpc::ServerUnaryReactor* ListQps(grpc::CallbackServerContext* context,
                                    const gateway::v1::ListQpsRequest* request,
                                    gateway::v1::ListQpsResponse* response) override;
  grpc::ServerUnaryReactor* ListConnections(
      grpc::CallbackServerContext* context, const gateway::v1::ListConnectionsRequest* request,
      gateway::v1::ListConnectionsResponse* response) override;
  grpc::ServerUnaryReactor* ListChannels(grpc::CallbackServerContext* context,
                                         const gateway::v1::ListChannelsRequest* request,
                                         gateway::v1::ListChannelsResponse* response) override;
  grpc::ServerUnaryReactor* ListMrs(grpc::CallbackServerContext* context,
                                    const gateway::v1::ListMrsRequest* request,
                                    gateway::v1::ListMrsResponse* response) override;
  grpc::ServerUnaryReactor* ListSrqs(grpc::CallbackServerContext* context,
                                     const gateway::v1::ListSrqsRequest* request,
                                     gateway::v1::ListSrqsResponse* response) override;
  grpc::ServerUnaryReactor* GetCounters(grpc::CallbackServerContext* context,
                                        const gateway::v1::GetCountersRequest* request,
                                        gateway::v1::GetCountersResponse* response) override;
  grpc::ServerUnaryReactor* ListPools(grpc::CallbackServerContext* context,
                                      const gateway::v1::ListPoolsRequest* request,
                                      gateway::v1::ListPoolsResponse* response) override;
  grpc::ServerUnaryReactor* ListEvents(grpc::CallbackServerContext* context,
                                       const gateway::v1::ListEventsRequest* request,
                                       gateway::v1::ListEventsResponse* response) override;

 private:
  // Queries the source, calls `fill`, then ends the call.
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   const session::StateQuery& query,
                                   std::function<void(session::StateSnapshot&)> fill);
  // `list` is the token's letter, `rows` the member of the snapshot, `fill` builds one message.
  template <typename Request, typename Response, typename Row, typename Key, typename Fill>
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const Request& request,
                                 Response* response, char list, const session::StateQuery& query,
                                 std::vector<Row> session::StateSnapshot::*rows, Key key,
                                 Fill fill);

  const GatewayIdentity& identity_;
  const Readiness& readiness_;
  StateSource& source_;
};

}  // namespace rocegw::service
