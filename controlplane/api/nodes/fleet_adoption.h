// SPDX-License-Identifier: Apache-2.0
// Makes gateways that report UNADOPTED follow this store, at all controllers that are there. What
// it does is in the controllers' memory, so the record under its request_id is written before, and
// the answer follows when everybody has done it: who repeats a call that has no answer yet goes on
// with it. Never waits. Any thread; must outlive its calls.
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

  // How many gateways follow this store since then.
  using Done = std::function<void(std::variant<uint32_t, ApiError>)>;
  // name: "gateways/G", or "gateways/-" for all.
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
