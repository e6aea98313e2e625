// SPDX-License-Identifier: Apache-2.0
// Adoption: makes gateways that report UNADOPTED follow this store, at all running controllers. The
// effect is in the controllers' memory, so a record under the request_id is written first, and the
// answer is added when all controllers have finished: a repeated call without an answer continues.
// Never waits. Any thread; must outlive its calls.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "controlplane/api/calls/call.h"
#include "controlplane/api/questions/replicas.h"
#include "controlplane/store/store.h"
#include "controlplane/sync/node_hub.h"

namespace rocegw::api {

class FleetAdoption {
 public:
  FleetAdoption(store::Store& store, sync::NodeHub& hub, Replicas& replicas)
      : store_(store), hub_(hub), replicas_(replicas) {}

  // Receives the number of gateways that now follow this store.
  using Done = std::function<void(std::variant<uint32_t, ApiError>)>;
  // `name`: "gateways/G", or "gateways/-" for all.
  void Adopt(const Call& call, const std::string& name, Replicas::Deadline deadline, Done done);

 private:
  struct Asked;
  void OnRecorded(const std::shared_ptr<Asked>& asked,
                  const StatusOr<store::TransactionResult>& result);
  void AdoptEverywhere(const std::shared_ptr<Asked>& asked);
  void KeepAnswer(const std::shared_ptr<Asked>& asked, uint32_t gateways);

  store::Store& store_;
  sync::NodeHub& hub_;
  Replicas& replicas_;
};

}  // namespace rocegw::api
