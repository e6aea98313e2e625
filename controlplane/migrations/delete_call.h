// SPDX-License-Identifier: Apache-2.0
// Deletion of a migration that has ended: first its events, in pieces, then the rest in one
// transaction with its audit record. A deletion that is cut off is finished by the next one. An
// object lives until its call is answered. gRPC's and the store's threads, one at a time.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "controlplane/api/calls/call.h"
#include "controlplane/migrations/stored_migration.h"

namespace rocegw::migrations {

class DeleteCall : public std::enable_shared_from_this<DeleteCall> {
 public:
  DeleteCall(store::Store& store, std::string name, api::Call call,
             grpc::ServerUnaryReactor* reactor);
  void Start();

 private:
  void OnRows(const StatusOr<store::RangeResult>& rows);
  void DeleteEvents();
  void OnEvents(const StatusOr<store::RangeResult>& rows);
  void DeleteRest();
  void Refuse(const api::ApiError& error);

  store::Store& store_;
  const std::string name_;
  const std::string id_;
  const api::Call call_;
  grpc::ServerUnaryReactor* const reactor_;
  StoredMigration stored_;
};

}  // namespace rocegw::migrations
