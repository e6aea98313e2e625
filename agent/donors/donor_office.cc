// SPDX-License-Identifier: Apache-2.0
#include "agent/donors/donor_office.h"

#include <spdlog/spdlog.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "agent/reconcile/unary_call.h"
#include "rocegw/fleet/v1/donors.grpc.pb.h"

namespace rocegw::agent {
namespace {

constexpr std::chrono::seconds kFindDeadline(20);

}  // namespace

DonorOffice::DonorOffice(ControlLoop& loop, const std::string& folder, std::string gateway,
                         std::function<std::shared_ptr<grpc::Channel>()> channel,
                         DonorCounters& counters)
    : loop_(loop),
      gateway_(std::move(gateway)),
      channel_(std::move(channel)),
      folder_(folder, counters) {
  if (folder.empty()) return;
  Status status = folder_.Open();
  if (status.ok()) {
    reporter_.emplace(loop_, folder_, gateway_, channel_, counters);
    desk_.emplace(
        loop_,
        [this](const far::DonorQuestion& question, DonorDesk::Answer answer) {
          Find(question, std::move(answer));
        },
        counters);
    status = desk_->Open(folder);
  }
  // The gateway does not depend on donors.
  if (!status.ok()) spdlog::error("donors_dir: {}", status.text());
}

DonorOffice::~DonorOffice() { *alive_ = false; }

void DonorOffice::Find(const far::DonorQuestion& question, DonorDesk::Answer answer) {
  fleet::v1::FindHostDonorsRequest request;
  request.set_gateway(gateway_);
  request.set_tenant("tenants/" + question.tenant);
  request.set_bytes(question.bytes);
  request.set_replicas(question.replicas);
  request.set_donors(question.donors);
  request.set_pool(question.pool);
  StartUnary<fleet::v1::FindHostDonorsResponse>(
      loop_, fleet::v1::DonorService::NewStub(channel_()), std::move(request), In(kFindDeadline),
      [](auto& stub, auto* context, auto* wanted, auto* response, auto done) {
        stub.async()->FindHostDonors(context, wanted, response, std::move(done));
      },
      [alive = alive_, answer = std::move(answer)](
          const grpc::Status& answered, const fleet::v1::FindHostDonorsResponse& response) {
        if (!*alive) return;
        if (!answered.ok()) return answer(Status(ENOENT, answered.error_message()));
        std::vector<far::NamedDonor> donors;
        for (const types::v1::FoundDonor& donor : response.donors()) {
          if (donor.addresses().empty()) continue;
          donors.push_back({.address = donor.addresses(0),
                            .port = donor.port(),
                            .failure_domain = donor.failure_domain(),
                            .name = donor.name()});
        }
        answer(std::move(donors));
      });
}

}  // namespace rocegw::agent
