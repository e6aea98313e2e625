// SPDX-License-Identifier: Apache-2.0
#include "controlplane/donors/host_donors_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "controlplane/api/calls/unary_call.h"

namespace rocegw::donors {
namespace {

constexpr char kDefaultTenant[] = "tenants/default";

// Call of an agent that creates the object of a donor. It has no request id: a repetition finds the
// object.
api::Call CreationBy(const api::Admitted& admitted, const types::v1::Donor& donor) {
  return {.principal = admitted.principal,
          .peer = admitted.peer,
          .method = admitted.method,
          .request_id = {},
          .request_digest = {},
          .request_json = model::JsonText(donor),
          .etag_before = {}};
}

bool IsApproved(const std::vector<std::string>& approved, const std::string& gateway) {
  return std::ranges::any_of(approved, [id = model::NameOf(gateway).id](const std::string& name) {
    return name == "*" || name == id;
  });
}

}  // namespace

grpc::ServerUnaryReactor* HostDonorsService::ReportDonors(
    grpc::CallbackServerContext* context, const fleet::v1::ReportDonorsRequest* request,
    fleet::v1::ReportDonorsResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const api::Admitted& admitted) {
    if (!report_pace_.May(request->gateway())) {
      reports_.RefuseAll(*request);
      return reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                              request->gateway() + " reports its donors too often"});
    }
    for (const std::string& name : reports_.Take(*request, *response)) {
      types::v1::Donor donor;
      donor.set_name(name);
      donor.mutable_spec()->set_approved(IsApproved(approved_gateways_, request->gateway()));
      const api::Call call = CreationBy(admitted, donor);
      // The agent reports again soon, whatever becomes of the write.
      backend_.writer.Write(
          call, 0,
          [donor, birth = api::NewBirth()](const sync::Fleet& fleet) {
            return api::PlanCreate(fleet, donor, birth);
          },
          [name, approved = donor.spec().approved()](const api::WrittenOrError& outcome) {
            if (const auto* error = std::get_if<api::ApiError>(&outcome)) {
              spdlog::warn("{} is not created: {}", name, error->message);
            } else {
              spdlog::info("{} has appeared{}", name,
                           approved ? "" : ": it needs approval (rocegwctl approve donor)");
            }
          });
    }
    reactor->Finish(grpc::Status::OK);
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* HostDonorsService::FindHostDonors(
    grpc::CallbackServerContext* context, const fleet::v1::FindHostDonorsRequest* request,
    fleet::v1::FindHostDonorsResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const api::Admitted&) {
    if (!search_pace_.May(request->gateway())) {
      ++searches_.refused;
      return reactor->Finish({grpc::StatusCode::RESOURCE_EXHAUSTED,
                              request->gateway() + " searches for donors too often"});
    }
    const bool has_tenant = backend_.follower.Read([&](const sync::Fleet& fleet) {
      return fleet.placement.HasTenant(request->gateway(), request->tenant());
    });
    if (!has_tenant && request->tenant() != kDefaultTenant) {
      ++searches_.refused;
      return reactor->Finish(api::ToStatus(
          api::PermissionDenied(request->tenant() + " has no pool on " + request->gateway() +
                                ": programs of that host get no donors for the tenant")));
    }
    reactor->Finish(AnswerSearch(backend_.follower,
                                 {.tenant = request->tenant(),
                                  .bytes = request->bytes(),
                                  .replicas = request->replicas(),
                                  .donors = request->donors(),
                                  .not_of = request->gateway(),
                                  .pool = request->pool()},
                                 searches_, *response));
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

}  // namespace rocegw::donors
