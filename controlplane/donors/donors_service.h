// SPDX-License-Identifier: Apache-2.0
// admin.v1.Donors: donors as stored objects, their drains, and the search for room. gRPC's threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "controlplane/api/services/standard_service.h"
#include "controlplane/donors/call_pace.h"
#include "controlplane/donors/donor_choice.h"
#include "rocegw/admin/v1/donors.grpc.pb.h"

namespace rocegw::donors {

// Searches for room; counted by both services.
struct SearchCounts {
  std::atomic<uint64_t> found{0};
  std::atomic<uint64_t> no_room{0};
  std::atomic<uint64_t> refused{0};  // too many, or for a tenant that has nothing on the gateway
};

// Answers a search.
template <typename Response>
grpc::Status AnswerSearch(const sync::FleetFollower& follower, const WantedRoom& wanted,
                          SearchCounts& counts, Response& response) {
  FoundRoom found =
      follower.Read([&](const sync::Fleet& fleet) { return FindRoom(fleet.view, wanted); });
  if (!found.problem.empty()) {
    ++counts.no_room;
    return api::ToStatus(api::FailedPrecondition("DOES_NOT_FIT", found.problem));
  }
  ++counts.found;
  for (types::v1::FoundDonor& donor : found.donors) response.add_donors()->Swap(&donor);
  return grpc::Status::OK;
}

class DonorsService final : public admin::v1::Donors::CallbackService {
 public:
  // All arguments outlive it.
  DonorsService(const api::Backend& backend, SearchCounts& searches)
      : backend_(backend), searches_(searches), standard_(backend) {}

  grpc::ServerUnaryReactor* GetDonor(grpc::CallbackServerContext* context,
                                     const admin::v1::GetDonorRequest* request,
                                     types::v1::Donor* response) override {
    return standard_.Get(context, *request, response);
  }
  grpc::ServerUnaryReactor* ListDonors(grpc::CallbackServerContext* context,
                                       const admin::v1::ListDonorsRequest* request,
                                       admin::v1::ListDonorsResponse* response) override {
    return standard_.List(context, *request, model::Collection::kDonors,
                          model::NameOf(request->parent(), true).id, response,
                          [response] { return response->add_donors(); });
  }
  grpc::ServerWriteReactor<admin::v1::WatchDonorsResponse>* WatchDonors(
      grpc::CallbackServerContext* context, const admin::v1::WatchDonorsRequest* request) override {
    return standard_.Watch<admin::v1::WatchDonorsResponse>(
        context, *request, model::Collection::kDonors, model::NameOf(request->parent(), true).id,
        [](admin::v1::WatchDonorsResponse& response) { return response.add_changed(); });
  }
  grpc::ServerUnaryReactor* CreateDonor(grpc::CallbackServerContext* context,
                                        const admin::v1::CreateDonorRequest* request,
                                        types::v1::Donor* response) override {
    return standard_.Create(context, *request, request->donor(), response);
  }
  grpc::ServerUnaryReactor* UpdateDonor(grpc::CallbackServerContext* context,
                                        const admin::v1::UpdateDonorRequest* request,
                                        types::v1::Donor* response) override {
    return standard_.Update(context, *request, request->donor(), response);
  }
  grpc::ServerUnaryReactor* DeleteDonor(grpc::CallbackServerContext* context,
                                        const admin::v1::DeleteDonorRequest* request,
                                        admin::v1::DeleteDonorResponse*) override {
    return standard_.Delete(context, *request);
  }
  grpc::ServerUnaryReactor* DrainDonor(grpc::CallbackServerContext* context,
                                       const admin::v1::DrainDonorRequest* request,
                                       types::v1::Donor* response) override;
  grpc::ServerUnaryReactor* UndrainDonor(grpc::CallbackServerContext* context,
                                         const admin::v1::UndrainDonorRequest* request,
                                         types::v1::Donor* response) override;
  grpc::ServerUnaryReactor* ApproveDonor(grpc::CallbackServerContext* context,
                                         const admin::v1::ApproveDonorRequest* request,
                                         types::v1::Donor* response) override;
  grpc::ServerUnaryReactor* RevokeDonor(grpc::CallbackServerContext* context,
                                        const admin::v1::RevokeDonorRequest* request,
                                        types::v1::Donor* response) override;
  grpc::ServerUnaryReactor* FindDonors(grpc::CallbackServerContext* context,
                                       const admin::v1::FindDonorsRequest* request,
                                       admin::v1::FindDonorsResponse* response) override;

 private:
  // Stores the donor with the spec that `change` leaves.
  template <typename Request>
  grpc::ServerUnaryReactor* ChangeSpec(grpc::CallbackServerContext* context, const Request& request,
                                       std::function<void(types::v1::DonorSpec&)> change,
                                       types::v1::Donor* response);

  const api::Backend& backend_;
  SearchCounts& searches_;
  CallPace search_pace_{10};  // by principal
  api::StandardService<types::v1::Donor> standard_;
};

}  // namespace rocegw::donors
