// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/migrations_service.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "controlplane/api/calls/audit_note.h"
#include "controlplane/api/calls/unary_call.h"
#include "controlplane/migration/plan/gate.h"
#include "controlplane/migrations/delete_call.h"
#include "controlplane/migrations/migration_message.h"
#include "controlplane/migrations/order_call.h"
#include "controlplane/model/resource_name.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::migrations {
namespace {

using api::Admitted;
using api::ApiError;
using migration::Order;
using migration::Verb;

constexpr int kUsualEvents = 200;
constexpr int kMostEvents = 1000;
// The end of a node's time is reported by its agent or the router, which needs some of the call's.
constexpr std::chrono::seconds kAnswerMargin(7);

std::string IdOf(const std::string& name) { return name.substr(name.find('/') + 1); }

std::optional<Verb> VerbOf(admin::v1::MigrationVerb verb) {
  switch (verb) {
    case admin::v1::START:
      return Verb::kStart;
    case admin::v1::PAUSE:
      return Verb::kPause;
    case admin::v1::RESUME:
      return Verb::kResume;
    case admin::v1::ABORT:
      return Verb::kAbort;
    case admin::v1::ROLLBACK:
      return Verb::kRollback;
    case admin::v1::FINALIZE:
      return Verb::kFinalize;
    case admin::v1::RETRY:
      return Verb::kRetry;
    case admin::v1::SKIP:
      return Verb::kSkip;
    case admin::v1::PREFLIGHT:
      return Verb::kPreflight;
    default:
      return std::nullopt;
  }
}

// Returns the index of a name; nullopt: there is none.
template <typename Items>
std::optional<uint32_t> IndexOf(const Items& items, const std::string& name) {
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].name == name) return i;
  }
  return std::nullopt;
}

// Returns why a plan cannot be driven here; nullopt: it can.
std::optional<ApiError> WhyNotDriven(const migration::Plan& plan, const GateSource& gates) {
  if (plan.nodes.size() > kMostDrivenNodes) {
    return api::InvalidArgument(
        {{"plan", "has more than " + std::to_string(kMostDrivenNodes) + " nodes"}});
  }
  if (!plan.gates.empty() && !gates.IsConfigured()) {
    return api::FailedPrecondition(
        "GATES_NOT_EVALUATED",
        "this controller has no Prometheus (prometheus.url of its configuration): make a plan "
        "without --gate; after each wave it asks the nodes' health");
  }
  for (const std::string& gate : plan.gates) {
    std::string problem;
    (void)migration::ReadGate(gate, problem);
    if (!problem.empty()) return api::InvalidArgument({{"plan", "has a gate: " + problem}});
  }
  if (!model::IsDnsLabel(plan.adapter))
    return api::InvalidArgument({{"plan", "names an adapter that is not a DNS label"}});
  for (const migration::PlannedNode& node : plan.nodes) {
    if (!model::IsDnsLabel(node.name)) {
      return api::InvalidArgument(
          {{"plan", "names node " + node.name + ", which cannot be a gateway's name"}});
    }
  }
  return std::nullopt;
}

}  // namespace

template <typename Request>
grpc::ServerUnaryReactor* MigrationsService::Give(
    grpc::CallbackServerContext& context, const Request& request, admin::v1::Migration* response,
    std::function<OrderOrError(const StoredMigration&)> order) {
  return api::WhenAdmitted(context, request, backend_.follower,
                           [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
                             std::make_shared<OrderCall>(
                                 backend_.store, request.name(), api::CallOf(admitted, request),
                                 std::move(order), upgraded_, reactor, response)
                                 ->Start();
                           });
}

grpc::ServerUnaryReactor* MigrationsService::CreateMigration(
    grpc::CallbackServerContext* context, const admin::v1::CreateMigrationRequest* request,
    admin::v1::Migration* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    StoredMigration wanted{.id = IdOf(request->name())};
    std::string problem;
    wanted.plan = migration::ReadPlan(request->plan(), problem);
    if (!problem.empty())
      return reactor->Finish(
          api::ToStatus(api::InvalidArgument({{"plan", "is none: " + problem}})));
    if (const auto error = WhyNotDriven(wanted.plan, gates_))
      return reactor->Finish(api::ToStatus(*error));
    wanted.record = migration::NewRecord(wanted.plan);
    if (!request->plan_hash().empty() && request->plan_hash() != wanted.record.plan_hash) {
      return reactor->Finish(
          api::ToStatus(api::InvalidArgument({{"plan_hash", "is not the plan's"}})));
    }
    // The plan itself is in the store; its hash says which one it was.
    admin::v1::CreateMigrationRequest noted = *request;
    noted.clear_plan();
    noted.set_plan_hash(wanted.record.plan_hash);
    std::make_shared<CreateCall>(backend_.store, std::move(wanted), api::CallOf(admitted, noted),
                                 kMost, upgraded_, reactor, response)
        ->Start();
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* MigrationsService::GetMigration(
    grpc::CallbackServerContext* context, const admin::v1::GetMigrationRequest* request,
    admin::v1::Migration* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    const auto answer = [reactor, response,
                         name = request->name()](const StatusOr<store::RangeResult>& rows) {
      if (!rows.ok()) return reactor->Finish(api::ToStatus(api::FromStore(rows.status())));
      if (rows.value().entries.empty()) return reactor->Finish(api::ToStatus(api::NotFound(name)));
      std::string problem;
      const StoredMigration stored = ReadMigration(IdOf(name), rows.value().entries, problem);
      if (!problem.empty()) return reactor->Finish(api::ToStatus(Unreadable(name, problem)));
      *response = MessageOf(stored, Detail::kWhole, model::SecondsNow());
      reactor->Finish(grpc::Status::OK);
    };
    backend_.store.RangeAsync({.range = store::KeyRange::Prefix(PrefixOf(IdOf(request->name())))},
                              answer);
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* MigrationsService::ListMigrations(
    grpc::CallbackServerContext* context, const admin::v1::ListMigrationsRequest* request,
    admin::v1::ListMigrationsResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    const auto answer = [reactor, response](const StatusOr<store::RangeResult>& rows) {
      if (!rows.ok()) return reactor->Finish(api::ToStatus(api::FromStore(rows.status())));
      std::map<std::string, std::vector<store::Entry>> entries;
      for (const store::Entry& entry : rows.value().entries)
        entries[IdOfKey(entry.key)].push_back(entry);
      for (const auto& [id, own] : entries) {
        std::string problem;
        const StoredMigration stored = ReadMigration(id, own, problem);
        admin::v1::Migration& message = *response->add_migrations();
        if (problem.empty()) {
          message = MessageOf(stored, Detail::kSummary, model::SecondsNow());
        } else {
          message.set_name("migrations/" + id);
          message.set_reason(problem);
        }
      }
      reactor->Finish(grpc::Status::OK);
    };
    backend_.store.RangeAsync({.range = store::KeyRange::Prefix(kMigrationPrefix)}, answer);
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* MigrationsService::ListMigrationEvents(
    grpc::CallbackServerContext* context, const admin::v1::ListMigrationEventsRequest* request,
    admin::v1::ListMigrationEventsResponse* response) {
  const int most =
      std::clamp(request->page_size() == 0 ? kUsualEvents : request->page_size(), 1, kMostEvents);
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    const auto answer = [reactor, response, most, name = request->name(),
                         after = request->after()](const StatusOr<store::RangeResult>& rows) {
      if (!rows.ok()) return reactor->Finish(api::ToStatus(api::FromStore(rows.status())));
      // Each migration has the event of its plan.
      if (rows.value().entries.empty()) return reactor->Finish(api::ToStatus(api::NotFound(name)));
      for (const store::Entry& row : rows.value().entries) {
        for (const migration::Change& change : ReadChanges(row.value)) {
          if (change.number <= after) continue;
          if (response->events_size() == most) {
            response->set_more(true);
            return reactor->Finish(grpc::Status::OK);
          }
          *response->add_events() = MessageOf(change);
        }
      }
      reactor->Finish(grpc::Status::OK);
    };
    backend_.store.RangeAsync(
        {.range = store::KeyRange::Prefix(EventPrefix(IdOf(request->name())))}, answer);
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* MigrationsService::ApproveWave(
    grpc::CallbackServerContext* context, const admin::v1::ApproveWaveRequest* request,
    admin::v1::Migration* response) {
  return Give(*context, *request, response,
              [wave = request->wave()](const StoredMigration& stored) -> OrderOrError {
                const auto index = IndexOf(stored.plan.waves, wave);
                if (!index.has_value())
                  return api::InvalidArgument({{"wave", "is not one of the plan"}});
                return Order{.verb = Verb::kApprove, .wave = index};
              });
}

grpc::ServerUnaryReactor* MigrationsService::ControlMigration(
    grpc::CallbackServerContext* context, const admin::v1::ControlMigrationRequest* request,
    admin::v1::Migration* response) {
  return Give(*context, *request, response,
              [asked = *request](const StoredMigration& stored) -> OrderOrError {
                const auto verb = VerbOf(asked.verb());
                if (!verb.has_value()) return api::InvalidArgument({{"verb", "is not known"}});
                Order order{.verb = *verb};
                if (!asked.node().empty()) {
                  order.node = IndexOf(stored.plan.nodes, asked.node());
                  if (!order.node.has_value())
                    return api::InvalidArgument({{"node", "is not one of the plan"}});
                }
                if (!asked.wave().empty()) {
                  order.wave = IndexOf(stored.plan.waves, asked.wave());
                  if (!order.wave.has_value())
                    return api::InvalidArgument({{"wave", "is not one of the plan"}});
                }
                return order;
              });
}

grpc::ServerUnaryReactor* MigrationsService::SetMigrationLimits(
    grpc::CallbackServerContext* context, const admin::v1::SetMigrationLimitsRequest* request,
    admin::v1::Migration* response) {
  return Give(*context, *request, response,
              [limits = request->limits()](const StoredMigration& stored) -> OrderOrError {
                return Order{.verb = Verb::kSet, .knobs = KnobsOf(stored.record.knobs, limits)};
              });
}

grpc::ServerUnaryReactor* MigrationsService::VerifyMigration(
    grpc::CallbackServerContext* context, const admin::v1::VerifyMigrationRequest* request,
    admin::v1::VerifyMigrationResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    if (!verifications_.Begin()) {
      return reactor->Finish(
          api::ToStatus({grpc::StatusCode::RESOURCE_EXHAUSTED,
                         "TOO_MANY_VERIFICATIONS",
                         "this controller runs as many verifications as it may; try again",
                         {},
                         {}}));
    }
    const auto left = std::chrono::floor<std::chrono::seconds>(context->deadline() -
                                                               std::chrono::system_clock::now());
    std::make_shared<VerifyCall>(backend_.store, nodes_, *request,
                                 api::AuditOf(admitted, request->name(), *request),
                                 std::max(left - kAnswerMargin, std::chrono::seconds(1)), response,
                                 [this, reactor](const grpc::Status& status) {
                                   verifications_.End();
                                   reactor->Finish(status);
                                 })
        ->Start();
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* MigrationsService::DeleteMigration(
    grpc::CallbackServerContext* context, const admin::v1::DeleteMigrationRequest* request,
    admin::v1::DeleteMigrationResponse* /*response*/) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    std::make_shared<DeleteCall>(backend_.store, request->name(), api::CallOf(admitted, *request),
                                 reactor)
        ->Start();
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

}  // namespace rocegw::migrations
