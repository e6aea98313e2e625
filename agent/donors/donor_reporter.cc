// SPDX-License-Identifier: Apache-2.0
#include "agent/donors/donor_reporter.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "agent/reconcile/unary_call.h"
#include "gateway/process/http/metric_families.h"
#include "rocegw/fleet/v1/donors.grpc.pb.h"

namespace rocegw::agent {
namespace {

constexpr std::chrono::seconds kDeadline(10);
constexpr std::string_view kTenants = "tenants/";

// Text of everything that the controller should know at once.
std::string NotableIn(const std::map<std::string, far::Announcement>& donors) {
  std::string text;
  for (const auto& [name, donor] : donors) {
    text += name + " " + donor.address + " " + std::to_string(donor.port) + " " +
            std::to_string(donor.donated_bytes) + " " + std::to_string(donor.generation) + " " +
            std::to_string(donor.shares) + (donor.draining ? " draining" : "") +
            (donor.leases == 0 ? " empty" : "") + " " + donor.pool + "\n";
  }
  return text;
}

}  // namespace

fleet::v1::ReportDonorsRequest ReportOf(const std::string& gateway,
                                        const std::map<std::string, far::Announcement>& donors) {
  fleet::v1::ReportDonorsRequest request;
  request.set_gateway(gateway);
  for (const auto& [name, donor] : donors) {
    fleet::v1::DonorReport& report = *request.add_donors();
    report.set_name(name);
    report.set_address(donor.address);
    report.set_port(donor.port);
    report.set_donated_bytes(donor.donated_bytes);
    report.set_leased_bytes(donor.leased_bytes);
    report.set_leases(donor.leases);
    report.set_sessions(donor.sessions);
    for (const auto& [tenant, bytes] : donor.tenants) {
      types::v1::DonorUse& use = *report.add_tenants();
      use.set_tenant(tenant);
      use.set_bytes(bytes);
    }
    report.set_draining(donor.draining);
    report.set_applied_generation(donor.generation);
    report.set_followed_shares(donor.shares);
    report.set_version(donor.version);
    report.set_pool(donor.pool);
    report.set_block_bytes(donor.block_bytes);
  }
  return request;
}

far::DonorOrders OrdersOf(const fleet::v1::DonorOrder& order) {
  far::DonorOrders orders;
  orders.generation = order.generation();
  orders.shares = order.shares_revision();
  orders.draining = order.draining();
  for (const types::v1::DonorQuota& quota : order.quotas()) {
    std::string_view tenant = quota.tenant();
    if (tenant.starts_with(kTenants)) tenant.remove_prefix(kTenants.size());
    orders.quotas[std::string(tenant)] = quota.bytes();
  }
  if (order.has_tenant_bytes()) orders.tenant_bytes = order.tenant_bytes();
  return orders;
}

DonorReporter::DonorReporter(ControlLoop& loop, DonorFolder& folder, std::string gateway,
                             std::function<std::shared_ptr<grpc::Channel>()> channel,
                             DonorCounters& counters)
    : loop_(loop),
      folder_(folder),
      gateway_(std::move(gateway)),
      channel_(std::move(channel)),
      counters_(counters) {
  Look();
}

DonorReporter::~DonorReporter() {
  *alive_ = false;
  loop_.Cancel(timer_);
}

void DonorReporter::Look() {
  const TimePoint now = ControlLoop::Now();
  timer_ = loop_.At(now + kLook, [this] { Look(); });
  if (asking_) return;
  const auto donors = folder_.Read(now, process::NowNanoseconds());
  if (donors.empty() && reported_none_ && !folder_.had_donors()) return;
  if (now >= report_at_ || NotableIn(donors) != reported_) Report(donors);
}

void DonorReporter::Report(const std::map<std::string, far::Announcement>& donors) {
  asking_ = true;
  report_at_ = ControlLoop::Now() + (donors.empty() ? kReportNone : kReport);
  reported_ = NotableIn(donors);
  ++counters_.reports;
  StartUnary<fleet::v1::ReportDonorsResponse>(
      loop_, fleet::v1::DonorService::NewStub(channel_()), ReportOf(gateway_, donors),
      In(kDeadline),
      [](auto& stub, auto* context, auto* wanted, auto* response, auto done) {
        stub.async()->ReportDonors(context, wanted, response, std::move(done));
      },
      [this, alive = alive_, none = donors.empty()](
          const grpc::Status& answered, const fleet::v1::ReportDonorsResponse& response) {
        if (!*alive) return;
        asking_ = false;
        const std::string problem = answered.ok() ? "" : answered.error_message();
        if (!answered.ok()) {
          ++counters_.failed_reports;
          if (problem != last_problem_) spdlog::warn("donors are not reported: {}", problem);
        }
        last_problem_ = problem;
        reported_none_ = none && answered.ok();
        if (answered.ok()) Take(response);
      });
}

void DonorReporter::Take(const fleet::v1::ReportDonorsResponse& response) {
  std::map<std::string, std::string> refusals;
  for (const fleet::v1::DonorOrder& order : response.donors()) {
    if (!far::IsDonorName(order.name())) continue;
    if (!order.refusal().empty()) {
      if (refusals_[order.name()] != order.refusal())
        spdlog::warn("the controller does not take the donor {}: {}", order.name(),
                     order.refusal());
      refusals[order.name()] = order.refusal();
      continue;
    }
    // The controller creates its object.
    if (order.generation() == 0) continue;
    const Status written = folder_.Order(order.name(), OrdersOf(order));
    if (!written.ok()) spdlog::warn("{}", written.text());
  }
  refusals_ = std::move(refusals);
}

}  // namespace rocegw::agent
