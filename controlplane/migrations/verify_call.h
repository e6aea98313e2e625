// SPDX-License-Identifier: Apache-2.0
// Verification by hand: asks nodes of a migration which transport they use, at the same time, and
// compares the answers with their states. Writes nothing but an audit record, and the migration
// goes on meanwhile: a node whose state changes during its answer is reported as unknown. An object
// lives until its call is answered. gRPC's, the store's and the router's threads.
#pragma once

#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "controlplane/api/calls/api_error.h"
#include "controlplane/migration/drive/claim.h"
#include "controlplane/migrations/nodes/node_access.h"
#include "controlplane/migrations/stored_migration.h"
#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::migrations {

// Number of verifications in progress; shared by the calls of one service.
class Verifications {
 public:
  static constexpr uint32_t kMost = 8;
  // Returns false if the limit is reached.
  bool Begin() {
    if (under_way_.fetch_add(1) < kMost) return true;
    --under_way_;
    return false;
  }
  void End() { --under_way_; }

 private:
  std::atomic<uint32_t> under_way_{0};
};

class VerifyCall : public std::enable_shared_from_this<VerifyCall> {
 public:
  // Called once, on any thread.
  using Done = std::function<void(const grpc::Status&)>;

  // `time`: how long nodes may take. `audit`: written before a node is asked. `response` is
  // complete when `done` is called with OK. Store and nodes outlive the call.
  VerifyCall(store::Store& store, NodeAccess& nodes, admin::v1::VerifyMigrationRequest request,
             store::Operation audit, std::chrono::seconds time,
             admin::v1::VerifyMigrationResponse* response, Done done);
  void Start();

 private:
  // Node in the order of the request.
  struct Asked {
    uint32_t node = 0;
    migration::Verification verification;
    migration::Evidence evidence;
  };
  using Then = void (VerifyCall::*)(StoredMigration stored);

  // Reads the migration and goes on with `then`, or ends the call.
  void Read(Then then);
  void Ask(StoredMigration stored);
  void AskNodes();
  void OnAnswer(size_t at, const NodeAnswer& answer);
  void Conclude(StoredMigration now);
  void Refuse(const api::ApiError& error);

  store::Store& store_;
  NodeAccess& nodes_;
  const admin::v1::VerifyMigrationRequest request_;
  const std::string id_;
  store::Operation audit_;
  const std::chrono::seconds time_;
  admin::v1::VerifyMigrationResponse* const response_;
  const Done done_;
  StoredMigration stored_;  // as it was before the nodes were asked
  std::mutex mutex_;        // guards what follows
  std::vector<Asked> asked_;
  size_t waiting_ = 0;
};

}  // namespace rocegw::migrations
