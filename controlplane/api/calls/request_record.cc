// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/calls/request_record.h"

#include <utility>

#include "controlplane/model/timestamp.h"

namespace rocegw::api {

void AddRequestRecord(const Call& call, store::Transaction& transaction, std::string answer) {
  if (call.request_id.empty()) return;
  const std::string key = RequestKey(call);
  transaction.compares.push_back(store::Compare::Absent(key));
  transaction.then.push_back(store::Operation::Put(
      key, RequestRecordOf(call, std::move(answer), model::Now()).SerializeAsString()));
}

std::optional<controlplane::v1::RequestRecord> ReadRequestRecord(
    const std::optional<store::Entry>& entry) {
  controlplane::v1::RequestRecord record;
  if (!entry.has_value() || !record.ParseFromString(entry->value)) return std::nullopt;
  return record;
}

}  // namespace rocegw::api
