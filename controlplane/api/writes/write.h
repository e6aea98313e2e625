// SPDX-License-Identifier: Apache-2.0
// One write of the API as one transaction of the store: the object, the answer under its
// request_id, the audit record, and comparisons that make it fail when anything that was relied on
// has changed. Pure; any thread.
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

// A rule over several objects that was relied on, at this revision of its key (model/stored.h). The
// write makes the next one.
struct Guard {
  std::string key;
  store::Revision revision = 0;
};

// What a write of one object comes to.
struct Plan {
  model::ResourceName name;
  // Serialized object without status; nullopt: it goes, and its status with it.
  std::optional<std::string> intent;
  // The revision of the intent that it replaces; 0: there must be none.
  store::Revision replaces = 0;
  // Names of objects that must exist: parents, and what it refers to.
  std::vector<std::string> needs;
  std::vector<Guard> guards;
  // Other objects that are written with it.
  struct Also {
    model::ResourceName name;
    std::string intent;
    store::Revision replaces = 0;
  };
  std::vector<Also> also;
  // Keys that are no objects and change with it.
  struct Record {
    std::string key;
    std::string value;
    store::Revision replaces = 0;  // 0: there must be none
  };
  std::vector<Record> records;
};

struct Records {
  std::string request_key;  // empty: the request had no id
  controlplane::v1::RequestRecord request;
  std::string audit_key;
  admin::v1::AuditRecord audit;
};

// A new one, in the order of time.
std::string AuditKey(const google::protobuf::Timestamp& time);

// Compares all that the plan relies on; puts or deletes the object, and puts the records. Otherwise
// it gets what tells why.
store::Transaction ToTransaction(const Plan& plan, const Records& records);

// Why a transaction of ToTransaction did not succeed.
struct Refused {
  // The write had been made before under the same request_id, at this revision.
  std::optional<controlplane::v1::RequestRecord> answered;
  store::Revision answered_at = 0;
  store::Revision is = 0;            // revision of the object's intent now; 0: there is none
  store::Revision newest = 0;        // of the object and the guards: what the plan did not know of
  std::vector<std::string> missing;  // of Plan::needs
};
Refused WhyRefused(const Plan& plan, const Records& records,
                   const store::TransactionResult& result);

}  // namespace rocegw::api
