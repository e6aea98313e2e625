// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/writes/standard_methods.h"

#include <google/protobuf/descriptor.h>

#include <cctype>

#include "controlplane/model/timestamp.h"
#include "controlplane/store/random_uuid.h"

namespace rocegw::api {

// CcPolicy is the field cc_policy of its requests.
std::string FieldOf(const google::protobuf::Message& object) {
  std::string field;
  for (const char c : object.GetDescriptor()->name()) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !field.empty()) field += '_';
    field += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return field;
}

std::vector<model::Violation> Below(const std::string& prefix,
                                    std::vector<model::Violation> violations) {
  for (model::Violation& violation : violations) {
    violation.field = violation.field.empty() ? prefix : prefix + "." + violation.field;
  }
  return violations;
}

Birth NewBirth() { return {.uid = store::RandomUuid(), .time = model::Now()}; }

std::string StoredBytes(const google::protobuf::Message& object) {
  std::unique_ptr<google::protobuf::Message> copy(object.New());
  copy->CopyFrom(object);
  const auto& descriptor = *copy->GetDescriptor();
  const auto& reflection = *copy->GetReflection();
  if (const auto* status = descriptor.FindFieldByName("status"))
    reflection.ClearField(copy.get(), status);
  const auto* meta = descriptor.FindFieldByName("meta");
  google::protobuf::Message& stored_meta = *reflection.MutableMessage(copy.get(), meta);
  stored_meta.GetReflection()->ClearField(&stored_meta,
                                          stored_meta.GetDescriptor()->FindFieldByName("etag"));
  return model::Serialized(*copy);
}

std::optional<ApiError> CheckFieldRights(const model::Caller& caller,
                                         const google::protobuf::Message& before,
                                         const google::protobuf::Message& after) {
  for (const model::GuardedChange& change : model::GuardedChanges(before, after)) {
    if (model::MayFleetWide(caller, change.permission)) continue;
    return PermissionDenied(caller.principal + ": " + FieldOf(after) + "." + change.field +
                            " concerns others than its tenant: the permission " +
                            change.permission + " is needed for the fleet");
  }
  return std::nullopt;
}

std::vector<Guard> WithRevisions(const sync::Fleet& fleet, const std::vector<std::string>& keys) {
  std::vector<Guard> guards;
  for (const std::string& key : keys) {
    const auto known = fleet.guards.find(key);
    guards.push_back({key, known == fleet.guards.end() ? 0 : known->second});
  }
  return guards;
}

}  // namespace rocegw::api
