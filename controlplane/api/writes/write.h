// SPDX-License-Identifier: Apache-2.0
// Write of the API as one transaction of the store: the object, the answer under its request_id,
// the audit record, and compares that make it fail if anything that it relied on has changed. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/api/calls/api_error.h"
#include "controlplane/model/resource_name.h"
#include "controlplane/store/transaction.h"
#include "rocegw/admin/v1/operations.pb.h"
#include "rocegw/controlplane/v1/records.pb.h"

namespace rocegw::api {

// Rule over several objects that the plan relied on, at this revision of its key (model/stored.h).
// The write creates the next revision.
struct Guard {
  std::string key;
  store::Revision revision = 0;
};

// Planned write of one object.
struct Plan {
  model::ResourceName name;
  // Serialized object without status; nullopt: it is deleted together with its status.
  std::optional<std::string> intent;
  // Revision of the replaced intent; 0: it must not exist.
  store::Revision replaces = 0;
  // Names of objects that must exist: parents, and references.
  std::vector<std::string> needs;
  std::vector<Guard> guards;
  // Other objects that the same transaction writes.
  struct Also {
    model::ResourceName name;
    std::string intent;
    store::Revision replaces = 0;
  };
  std::vector<Also> also;
  // Key that is not an object and is written in the same transaction.
  struct Record {
    std::string key;
    std::string value;
    store::Revision replaces = 0;  // 0: must not exist
  };
  std::vector<Record> records;
};

struct Records {
  std::string request_key;  // empty: a request without id
  controlplane::v1::RequestRecord request;
  std::string audit_key;
  admin::v1::AuditRecord audit;
};

// Returns a new key, ordered by time.
std::string AuditKey(const google::protobuf::Timestamp& time);

// Compares everything that the plan relies on; then writes or deletes the object and writes the
// records. On a conflict the transaction reads what explains it.
store::Transaction ToTransaction(const Plan& plan, const Records& records);

// Reason why a transaction of ToTransaction failed.
struct Refused {
  // Set if the write was done before under the same request_id, at this revision.
  std::optional<controlplane::v1::RequestRecord> answered;
  store::Revision answered_at = 0;
  store::Revision is = 0;      // current revision of the object's intent; 0: none
  store::Revision newest = 0;  // newest revision of object and guards that the plan did not know
  std::vector<std::string> missing;  // missing objects of Plan::needs
};
Refused WhyRefused(const Plan& plan, const Records& records,
                   const store::TransactionResult& result);

}  // namespace rocegw::api
