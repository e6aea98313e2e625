// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/nodes/fleet_nodes.h"

#include <algorithm>
#include <utility>

#include "controlplane/api/questions/probe_pair.h"

namespace rocegw::migrations {
namespace {

// The agent reports the end of a call's time by itself; its report gets a little more.
constexpr std::chrono::seconds kMargin(5);
// Each message takes whole packets of every path MTU.
constexpr uint32_t kPathMessageBytes = 8192;
constexpr uint32_t kPathRoundTrips = 100;
constexpr uint64_t kPathBulkBytes = 4 << 20;
constexpr char kProbePool[] = "tenants/default/pools/default";
constexpr int32_t kMostPools = 1000;
// Nodes renew their certificates at half of the lifetime, so less than a quarter means that it
// fails. Certificates from before a longer lifetime was configured are as long as they were.
constexpr int kShortestPart = 4;
constexpr std::chrono::seconds kLongEnough = std::chrono::hours(6);

}  // namespace

bool FleetNodes::IsReachable(const std::string& node) {
  return follower_.Read([&](const sync::Fleet& fleet) {
    const auto known = fleet.view.gateways.find("gateways/" + node);
    return known != fleet.view.gateways.end() && known->second.object.status().connected();
  });
}

std::string FleetNodes::Problem(const std::string& node) {
  return follower_.Read([&](const sync::Fleet& fleet) -> std::string {
    const auto known = fleet.view.gateways.find("gateways/" + node);
    if (known == fleet.view.gateways.end()) return {};
    return CertificateProblem(known->second.object.status(), certificate_lifetime_,
                              std::chrono::system_clock::now());
  });
}

std::string CertificateProblem(const types::v1::GatewayState& status, std::chrono::seconds lifetime,
                               std::chrono::system_clock::time_point now) {
  if (!status.has_certificate_expire_time()) return {};
  const auto end =
      std::chrono::system_clock::from_time_t(status.certificate_expire_time().seconds());
  if (end >= now + std::min(lifetime / kShortestPart, kLongEnough)) return {};
  const auto left = std::chrono::ceil<std::chrono::minutes>(end - now).count();
  return (end > now ? "its certificate ends in " + std::to_string(left) + " minutes"
                    : std::string("its certificate has ended")) +
         ": the agent's renewal fails";
}

void FleetNodes::Call(const std::string& node, const fleet::v1::MigrationCall& call,
                      std::chrono::seconds limit, std::function<void(NodeAnswer)> done) {
  fleet::v1::TunnelQuestion question;
  *question.mutable_migration_call() = call;
  router_.Ask("gateways/" + node, question, api::QuestionRouter::Clock::now() + limit + kMargin,
              [done = std::move(done)](sync::TunnelResult result) {
                NodeAnswer answer{.code = result.code, .message = std::move(result.message)};
                if (!result.parts.empty()) answer.report = result.parts[0].migration_report();
                done(std::move(answer));
              });
}

QpLimits FleetNodes::LimitsOf(const std::string& node) {
  const auto qps = [](const types::v1::Limits& limits) {
    return limits.has_qps() ? std::optional<uint64_t>(limits.qps()) : std::nullopt;
  };
  QpLimits known;
  follower_.Read([&](const sync::Fleet& fleet) {
    const auto gateway = fleet.view.gateways.find("gateways/" + node);
    if (gateway != fleet.view.gateways.end())
      known.capacity = qps(gateway->second.object.status().capacity());
    for (const auto& [name, tenant] : fleet.view.tenants) {
      const auto& quota = tenant.object.spec().quota();
      known.tenants[name] = {.committed = qps(quota.committed()).value_or(0),
                             .peak = qps(quota.peak())};
    }
    const auto pool = fleet.view.pools.find(kProbePool);
    if (pool != fleet.view.pools.end())
      known.pool_peak = qps(pool->second.object.spec().quota().peak());
  });
  return known;
}

void FleetNodes::ReadQuota(const std::string& node, std::chrono::seconds limit,
                           std::function<void(NodeAnswer)> done) {
  fleet::v1::TunnelQuestion question;
  question.mutable_list_pools()->set_page_size(kMostPools);
  const auto answered = [limits = LimitsOf(node),
                         done = std::move(done)](sync::TunnelResult result) {
    NodeAnswer answer{.code = result.code, .message = std::move(result.message)};
    if (answer.code != 0) return done(std::move(answer));
    FreeQps free{.unknown = "the agent answered without a word", .free = {}};
    if (!result.parts.empty()) free = FreeQpsOf(limits, kProbePool, result.parts[0].pools());
    answer.free_qps = free.free;
    if (!free.unknown.empty()) {
      answer.code = grpc::StatusCode::NOT_FOUND;
      answer.message = free.unknown;
    }
    done(std::move(answer));
  };
  router_.Ask("gateways/" + node, question, api::QuestionRouter::Clock::now() + limit, answered);
}

void FleetNodes::TestPath(const std::string& from, const std::string& to,
                          std::chrono::seconds limit, std::function<void(NodeAnswer)> done) {
  admin::v1::TestConnectivityRequest request;
  request.set_from("gateways/" + from);
  request.set_to("gateways/" + to);
  request.set_pool(kProbePool);
  request.set_message_bytes(kPathMessageBytes);
  request.set_round_trips(kPathRoundTrips);
  request.set_bulk_bytes(kPathBulkBytes);
  request.set_plain(true);
  const auto answered = [done =
                             std::move(done)](const admin::v1::TestConnectivityResponse& result) {
    NodeAnswer answer{.median_ns = result.connectivity().round_trip_median_ns(),
                      .p99_ns = result.connectivity().round_trip_p99_ns(),
                      .bytes_per_second = result.connectivity().bulk_bytes_per_second()};
    if (result.connectivity().has_plain()) answer.plain = result.connectivity().plain();
    if (result.fault() != types::v1::CONNECTIVITY_FAULT_UNSPECIFIED) {
      answer.code = grpc::StatusCode::FAILED_PRECONDITION;
      answer.message = types::v1::ConnectivityFault_Name(result.fault()) + " at " +
                       result.noticed_at() + ": " + result.message();
      answer.remedy = result.remedy();
    }
    done(std::move(answer));
  };
  (void)api::ProbePair::Start(router_, std::move(request),
                              api::QuestionRouter::Clock::now() + limit, answered);
}

}  // namespace rocegw::migrations
