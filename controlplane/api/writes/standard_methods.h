// SPDX-License-Identifier: Apache-2.0
// Common part of Create, Update and Delete of all kinds of objects, from a checked request to a
// plan: etags, update masks, allow_missing, output-only fields, relations to other objects. Pure;
// any thread.
#pragma once

#include <google/protobuf/field_mask.pb.h>

#include <string>
#include <utility>

#include "controlplane/api/writes/object_kind.h"
#include "controlplane/api/writes/writer.h"
#include "controlplane/model/access.h"
#include "controlplane/model/check.h"
#include "controlplane/model/field_mask.h"
#include "controlplane/model/serialized.h"
#include "controlplane/model/stored.h"

namespace rocegw::api {

// Generated values of a new object.
struct Birth {
  std::string uid;
  google::protobuf::Timestamp time;
};

// Returns a new uid and the current time.
Birth NewBirth();

// Returns the field name for violations, such as "pool".
std::string FieldOf(const google::protobuf::Message& object);

// Prefixes the fields of violations that were found below it.
std::vector<model::Violation> Below(const std::string& prefix,
                                    std::vector<model::Violation> violations);

// Returns the stored form: without derived fields.
std::string StoredBytes(const google::protobuf::Message& object);

// Returns guards with the revisions at which the fleet knows them.
std::vector<Guard> WithRevisions(const sync::Fleet& fleet, const std::vector<std::string>& keys);

// Returns an error if the caller changes fields that concern other tenants.
std::optional<ApiError> CheckFieldRights(const model::Caller& caller,
                                         const google::protobuf::Message& before,
                                         const google::protobuf::Message& after);

template <typename Object>
PlanOrError PlanPut(const sync::Fleet& fleet, Object object, store::Revision replaces) {
  Plan plan;
  plan.name = model::NameOf(object.name());
  const Relations relations = RelationsOf(fleet, object);
  if (!relations.violations.empty())
    return FailedPrecondition("DOES_NOT_FIT", {}, relations.violations);
  plan.needs = relations.needs;
  plan.guards = WithRevisions(fleet, relations.guards);
  plan.replaces = replaces;
  plan.intent = StoredBytes(object);
  return plan;
}

template <typename Object>
PlanOrError PlanCreate(const sync::Fleet& fleet, Object object, const Birth& birth) {
  const auto& objects = controllers::ObjectsOf<Object>(fleet.view);
  if (objects.contains(object.name())) return AlreadyExists(object.name());
  model::ClearOutputOnly(object);
  object.mutable_meta()->set_uid(birth.uid);
  object.mutable_meta()->set_generation(1);
  *object.mutable_meta()->mutable_create_time() = birth.time;
  *object.mutable_meta()->mutable_update_time() = birth.time;
  return PlanPut(fleet, std::move(object), 0);
}

// Plans a creation.
template <typename Object>
PlanOrError PlanCreate(const sync::Fleet& fleet, const model::Caller& caller, Object object,
                       const Birth& birth) {
  if (auto error = CheckFieldRights(caller, Object::default_instance(), object)) return *error;
  return PlanCreate(fleet, std::move(object), birth);
}

template <typename Object>
PlanOrError PlanUpdate(const sync::Fleet& fleet, const model::Caller& caller, const Object& wanted,
                       const google::protobuf::FieldMask& mask, bool allow_missing,
                       const Birth& birth) {
  const auto& objects = controllers::ObjectsOf<Object>(fleet.view);
  const auto known = objects.find(wanted.name());
  if (known == objects.end()) {
    if (!allow_missing || !wanted.meta().etag().empty()) return NotFound(wanted.name());
    // With a mask, only parts of the object were checked so far.
    if (auto violations = model::Check(wanted); !violations.empty())
      return InvalidArgument(Below(FieldOf(wanted), std::move(violations)));
    return PlanCreate(fleet, caller, wanted, birth);
  }
  const std::string& etag = wanted.meta().etag();
  const Object& before = known->second.object;
  if (!etag.empty() && etag != before.meta().etag())
    return EtagMismatch(wanted.name(), etag, before.meta().etag());
  Object after = before;
  if (auto violations = model::Merge(wanted, mask, after); !violations.empty()) {
    return InvalidArgument(std::move(violations));
  }
  // The merged object must follow the rules, too.
  if (auto violations = model::Check(after); !violations.empty()) {
    return InvalidArgument(Below(FieldOf(after), std::move(violations)));
  }
  if (auto error = CheckFieldRights(caller, before, after)) return *error;
  if (model::Serialized(after.spec()) != model::Serialized(before.spec())) {
    after.mutable_meta()->set_generation(before.meta().generation() + 1);
  }
  *after.mutable_meta()->mutable_update_time() = birth.time;
  return PlanPut(fleet, std::move(after), known->second.intent_revision);
}

template <typename Object>
PlanOrError PlanDelete(const sync::Fleet& fleet, const std::string& name, const std::string& etag) {
  const auto& objects = controllers::ObjectsOf<Object>(fleet.view);
  const auto known = objects.find(name);
  if (known == objects.end()) return NotFound(name);
  const std::string& is = known->second.object.meta().etag();
  if (!etag.empty() && etag != is) return EtagMismatch(name, etag, is);
  Plan plan;
  plan.name = model::NameOf(name);
  const Holders holders = HoldersOf(fleet, plan.name);
  if (!holders.names.empty()) {
    std::string text = name + " is still used by ";
    for (size_t i = 0; i < holders.names.size(); ++i)
      text += (i == 0 ? "" : ", ") + holders.names[i];
    return FailedPrecondition("STILL_IN_USE", std::move(text));
  }
  plan.guards = WithRevisions(fleet, holders.guards);
  plan.replaces = known->second.intent_revision;
  return plan;
}

}  // namespace rocegw::api
