// SPDX-License-Identifier: Apache-2.0
// admin.v1.CcPolicies: passes each call to the standard methods. gRPC's threads.
#pragma once

#include "controlplane/api/services/standard_service.h"
#include "rocegw/admin/v1/cc_policies.grpc.pb.h"

namespace rocegw::api {

class CcPoliciesService final : public admin::v1::CcPolicies::CallbackService {
 public:
  explicit CcPoliciesService(const Backend& backend) : standard_(backend) {}

  grpc::ServerUnaryReactor* GetCcPolicy(grpc::CallbackServerContext* context,
                                        const admin::v1::GetCcPolicyRequest* request,
                                        types::v1::CcPolicy* response) override {
    return standard_.Get(context, *request, response);
  }
  grpc::ServerUnaryReactor* ListCcPolicies(grpc::CallbackServerContext* context,
                                           const admin::v1::ListCcPoliciesRequest* request,
                                           admin::v1::ListCcPoliciesResponse* response) override {
    return standard_.List(context, *request, model::Collection::kCcPolicies, {}, response,
                          [response] { return response->add_cc_policies(); });
  }
  grpc::ServerWriteReactor<admin::v1::WatchCcPoliciesResponse>* WatchCcPolicies(
      grpc::CallbackServerContext* context,
      const admin::v1::WatchCcPoliciesRequest* request) override {
    return standard_.Watch<admin::v1::WatchCcPoliciesResponse>(
        context, *request, model::Collection::kCcPolicies, {},
        [](admin::v1::WatchCcPoliciesResponse& response) { return response.add_changed(); });
  }
  grpc::ServerUnaryReactor* CreateCcPolicy(grpc::CallbackServerContext* context,
                                           const admin::v1::CreateCcPolicyRequest* request,
                                           types::v1::CcPolicy* response) override {
    return standard_.Create(context, *request, request->cc_policy(), response);
  }
  grpc::ServerUnaryReactor* UpdateCcPolicy(grpc::CallbackServerContext* context,
                                           const admin::v1::UpdateCcPolicyRequest* request,
                                           types::v1::CcPolicy* response) override {
    return standard_.Update(context, *request, request->cc_policy(), response);
  }
  grpc::ServerUnaryReactor* DeleteCcPolicy(grpc::CallbackServerContext* context,
                                           const admin::v1::DeleteCcPolicyRequest* request,
                                           admin::v1::DeleteCcPolicyResponse*) override {
    return standard_.Delete(context, *request);
  }

 private:
  StandardService<types::v1::CcPolicy> standard_;
};

}  // namespace rocegw::api
