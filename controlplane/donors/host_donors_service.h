// SPDX-License-Identifier: Apache-2.0
// fleet.v1.DonorService, called by agents: reports about the donors of their hosts, and searches
// for programs on their hosts. gRPC's threads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "controlplane/api/services/standard_service.h"
#include "controlplane/donors/call_pace.h"
#include "controlplane/donors/donor_reports.h"
#include "controlplane/donors/donors_service.h"
#include "rocegw/fleet/v1/donors.grpc.pb.h"

namespace rocegw::donors {

class HostDonorsService final : public fleet::v1::DonorService::CallbackService {
 public:
  // `approved_gateways`: ids of the gateways whose donors need no approval; "*": all gateways. The
  // references outlive it.
  HostDonorsService(const api::Backend& backend, DonorReports& reports, SearchCounts& searches,
                    std::vector<std::string> approved_gateways)
      : backend_(backend),
        reports_(reports),
        searches_(searches),
        approved_gateways_(std::move(approved_gateways)) {}

  grpc::ServerUnaryReactor* ReportDonors(grpc::CallbackServerContext* context,
                                         const fleet::v1::ReportDonorsRequest* request,
                                         fleet::v1::ReportDonorsResponse* response) override;
  grpc::ServerUnaryReactor* FindHostDonors(grpc::CallbackServerContext* context,
                                           const fleet::v1::FindHostDonorsRequest* request,
                                           fleet::v1::FindHostDonorsResponse* response) override;

 private:
  const api::Backend& backend_;
  DonorReports& reports_;
  SearchCounts& searches_;
  const std::vector<std::string> approved_gateways_;
  // By gateway. An agent reports once a second at most; a search looks at all donors.
  CallPace report_pace_{5};
  CallPace search_pace_{10};
};

}  // namespace rocegw::donors
