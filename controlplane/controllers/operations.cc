// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/operations.h"

namespace rocegw::controllers {
namespace {

types::v1::OperationStatus Failed(const char* reason, std::string message) {
  types::v1::OperationStatus status;
  status.set_done(true);
  status.set_error_reason(reason);
  status.set_error_message(std::move(message));
  return status;
}

types::v1::OperationStatus Under(std::string step) {
  types::v1::OperationStatus status;
  status.set_step(std::move(step));
  return status;
}

types::v1::OperationStatus DrainOf(const Known<types::v1::Gateway>& known) {
  const types::v1::Gateway& gateway = known.object;
  if (gateway.spec().admin_state() != types::v1::DRAINING) {
    return Failed("CANCELLED", gateway.name() + " was taken back into service");
  }
  if (!gateway.status().connected()) return Under("waiting for the agent to connect");
  const types::v1::DrainProgress& drain = gateway.status().drain();
  // A report about an earlier drain does not answer this one.
  const bool begun =
      drain.has_start_time() && gateway.status().applied_revision() >= known.intent_revision;
  if (!begun) return Under("waiting for the gateway to begin");
  if (drain.empty()) {
    types::v1::OperationStatus status = Under("empty");
    status.set_done(true);
    return status;
  }
  std::string held = std::to_string(drain.sessions()) + " sessions, " +
                     std::to_string(drain.qps()) + " QPs, " +
                     std::to_string(drain.outstanding_requests()) + " requests left";
  if (drain.holders_size() != 0) held += "; first: " + drain.holders(0);
  return Under(std::move(held));
}

}  // namespace

types::v1::OperationStatus StandOf(const FleetView& view, const types::v1::Operation& operation) {
  if (operation.status().done()) return operation.status();
  const auto target = view.gateways.find(operation.spec().target());
  if (target == view.gateways.end()) {
    return Failed("TARGET_GONE", operation.spec().target() + " does not exist any more");
  }
  return DrainOf(target->second);
}

}  // namespace rocegw::controllers
