// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writes/drain.h"

#include "controlplane/controllers/operations.h"
#include "controlplane/model/serialized.h"

namespace rocegw::api {
namespace {

// Returns the stored form of the gateway with another spec.
std::string Changed(const types::v1::Gateway& before, const types::v1::GatewaySpec& spec,
                    const Birth& birth) {
  types::v1::Gateway after = before;
  if (model::Serialized(spec) != model::Serialized(before.spec())) {
    *after.mutable_spec() = spec;
    after.mutable_meta()->set_generation(before.meta().generation() + 1);
    *after.mutable_meta()->mutable_update_time() = birth.time;
  }
  return StoredBytes(after);
}

types::v1::GatewaySpec BackInService(const types::v1::Gateway& gateway) {
  types::v1::GatewaySpec spec = gateway.spec();
  spec.set_admin_state(types::v1::ACTIVE);
  spec.clear_drain_deadline();
  spec.clear_on_deadline();
  return spec;
}

}  // namespace

PlanOrError PlanDrain(const sync::Fleet& fleet, const admin::v1::DrainGatewayRequest& request,
                      const std::string& operation_id, const std::string& principal,
                      const Birth& birth) {
  const auto known = fleet.view.gateways.find(request.name());
  if (known == fleet.view.gateways.end()) return NotFound(request.name());
  types::v1::GatewaySpec spec = known->second.object.spec();
  spec.set_admin_state(types::v1::DRAINING);
  spec.clear_drain_deadline();
  if (request.has_deadline()) *spec.mutable_drain_deadline() = request.deadline();
  spec.set_on_deadline(request.on_deadline());

  types::v1::Operation operation;
  operation.set_name("operations/" + operation_id);
  operation.mutable_meta()->set_uid(birth.uid);
  operation.mutable_meta()->set_generation(1);
  *operation.mutable_meta()->mutable_create_time() = birth.time;
  *operation.mutable_meta()->mutable_update_time() = birth.time;
  operation.mutable_spec()->set_target(request.name());
  operation.mutable_spec()->set_verb(controllers::kDrain);
  operation.mutable_spec()->set_principal(principal);

  Plan plan;
  plan.name = model::NameOf(operation.name());
  plan.intent = StoredBytes(operation);
  plan.also.push_back({.name = model::NameOf(request.name()),
                       .intent = Changed(known->second.object, spec, birth),
                       .replaces = known->second.intent_revision});
  return plan;
}

PlanOrError PlanUndrain(const sync::Fleet& fleet, const std::string& gateway, const Birth& birth) {
  const auto known = fleet.view.gateways.find(gateway);
  if (known == fleet.view.gateways.end()) return NotFound(gateway);
  Plan plan;
  plan.name = model::NameOf(gateway);
  plan.intent = Changed(known->second.object, BackInService(known->second.object), birth);
  plan.replaces = known->second.intent_revision;
  return plan;
}

PlanOrError PlanCancelDrain(const sync::Fleet& fleet, const types::v1::Operation& operation,
                            const Birth& birth) {
  const std::string& target = operation.spec().target();
  const auto gateway = fleet.view.gateways.find(target);
  if (gateway == fleet.view.gateways.end()) return NotFound(target);
  Plan plan;
  plan.name = model::NameOf(operation.name());
  types::v1::Operation touched = operation;
  *touched.mutable_meta()->mutable_update_time() = birth.time;
  plan.intent = StoredBytes(touched);
  plan.replaces = fleet.view.operations.at(operation.name()).intent_revision;
  plan.also.push_back(
      {.name = model::NameOf(target),
       .intent = Changed(gateway->second.object, BackInService(gateway->second.object), birth),
       .replaces = gateway->second.intent_revision});
  return plan;
}

}  // namespace rocegw::api
