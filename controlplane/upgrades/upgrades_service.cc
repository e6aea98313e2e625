// SPDX-License-Identifier: Apache-2.0
#include "controlplane/upgrades/upgrades_service.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "controlplane/api/calls/unary_call.h"
#include "controlplane/model/label_selector.h"
#include "controlplane/model/timestamp.h"

namespace rocegw::upgrades {
namespace {

using api::Admitted;
using api::ApiError;

std::string IdOf(const std::string& name) { return name.substr(name.find('/') + 1); }

// Finds the gateways of a new upgrade, in the order of their names or of the request.
std::optional<ApiError> Select(const sync::FleetFollower& follower,
                               const admin::v1::UpgradeSpec& spec,
                               std::vector<std::string>& names) {
  const auto selector = model::LabelSelector::Parse(spec.label_selector());
  if (!selector.has_value())
    return api::InvalidArgument({{"spec.label_selector", "is no selector: key=value,!key"}});
  if (!spec.gateways().empty() && !spec.label_selector().empty())
    return api::InvalidArgument({{"spec.label_selector", "is not for named gateways"}});
  return follower.Read([&](const sync::Fleet& fleet) -> std::optional<ApiError> {
    for (const std::string& name : spec.gateways()) {
      if (!fleet.view.gateways.contains(name)) return api::NotFound(name);
      names.push_back(name);
    }
    if (!spec.gateways().empty()) return std::nullopt;
    for (const auto& [name, known] : fleet.view.gateways) {
      if (selector->Matches(known.object.meta().labels())) names.push_back(name);
    }
    return std::nullopt;
  });
}

}  // namespace

grpc::ServerUnaryReactor* UpgradesService::CreateUpgrade(
    grpc::CallbackServerContext* context, const admin::v1::CreateUpgradeRequest* request,
    admin::v1::Upgrade* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    StoredUpgrade wanted{.id = IdOf(request->name()), .upgrade = {}};
    wanted.upgrade.set_name(request->name());
    wanted.upgrade.set_principal(admitted.principal);
    *wanted.upgrade.mutable_spec() = request->spec();
    std::vector<std::string> names;
    if (const auto error = Select(backend_.follower, request->spec(), names))
      return reactor->Finish(api::ToStatus(*error));
    const std::string problem = Plan(names, model::SecondsNow(), wanted.upgrade);
    if (!problem.empty())
      return reactor->Finish(api::ToStatus(api::InvalidArgument({{"spec", problem}})));
    std::make_shared<CreateCall>(backend_.store, std::move(wanted), api::CallOf(admitted, *request),
                                 kMost, migrated_, reactor, response)
        ->Start();
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* UpgradesService::GetUpgrade(grpc::CallbackServerContext* context,
                                                      const admin::v1::GetUpgradeRequest* request,
                                                      admin::v1::Upgrade* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    const auto answer = [reactor, response,
                         name = request->name()](const StatusOr<store::RangeResult>& rows) {
      if (!rows.ok()) return reactor->Finish(api::ToStatus(api::FromStore(rows.status())));
      if (rows.value().entries.empty()) return reactor->Finish(api::ToStatus(api::NotFound(name)));
      std::string problem;
      StoredUpgrade stored = ReadUpgrade(IdOf(name), rows.value().entries, problem);
      if (!problem.empty()) return reactor->Finish(api::ToStatus(Unreadable(name, problem)));
      response->Swap(&stored.upgrade);
      *response->mutable_read_time() = model::Now();
      reactor->Finish(grpc::Status::OK);
    };
    backend_.store.RangeAsync({.range = store::KeyRange::Prefix(PrefixOf(IdOf(request->name())))},
                              answer);
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* UpgradesService::ListUpgrades(
    grpc::CallbackServerContext* context, const admin::v1::ListUpgradesRequest* request,
    admin::v1::ListUpgradesResponse* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted&) {
    const auto answer = [reactor, response](const StatusOr<store::RangeResult>& rows) {
      if (!rows.ok()) return reactor->Finish(api::ToStatus(api::FromStore(rows.status())));
      std::map<std::string, std::vector<store::Entry>> entries;
      for (const store::Entry& entry : rows.value().entries)
        entries[IdOfKey(entry.key)].push_back(entry);
      for (const auto& [id, own] : entries) {
        std::string problem;
        StoredUpgrade stored = ReadUpgrade(id, own, problem);
        admin::v1::Upgrade& upgrade = *response->add_upgrades();
        upgrade.Swap(&stored.upgrade);
        upgrade.clear_gateways();
        // A list of 64 upgrades with 2000 names each would be longer than a message of gRPC.
        upgrade.mutable_spec()->clear_gateways();
        *upgrade.mutable_read_time() = model::Now();
        if (problem.empty()) continue;
        upgrade.set_name("upgrades/" + id);
        upgrade.set_reason(problem);
      }
      reactor->Finish(grpc::Status::OK);
    };
    backend_.store.RangeAsync({.range = store::KeyRange::Prefix(kUpgradePrefix)}, answer);
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* UpgradesService::ControlUpgrade(
    grpc::CallbackServerContext* context, const admin::v1::ControlUpgradeRequest* request,
    admin::v1::Upgrade* response) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    const auto order = [verb = request->verb(), name = request->name(),
                        principal = admitted.principal](admin::v1::Upgrade& upgrade,
                                                        Step& step) -> std::optional<ApiError> {
      const std::string refusal = Give(verb, principal, model::SecondsNow(), upgrade, step);
      if (refusal.empty()) return std::nullopt;
      return api::FailedPrecondition("NOT_NOW", name + ": " + refusal);
    };
    std::make_shared<OrderCall>(backend_.store, request->name(), api::CallOf(admitted, *request),
                                order, reactor, response)
        ->Start();
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

grpc::ServerUnaryReactor* UpgradesService::DeleteUpgrade(
    grpc::CallbackServerContext* context, const admin::v1::DeleteUpgradeRequest* request,
    admin::v1::DeleteUpgradeResponse* /*response*/) {
  const auto serve = [&](grpc::ServerUnaryReactor* reactor, const Admitted& admitted) {
    std::make_shared<OrderCall>(backend_.store, request->name(), api::CallOf(admitted, *request),
                                OrderCall::Order(), reactor, nullptr)
        ->Start();
  };
  return api::WhenAdmitted(*context, *request, backend_.follower, serve);
}

}  // namespace rocegw::upgrades
