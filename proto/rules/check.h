// SPDX-License-Identifier: Apache-2.0
// Checks foreign messages against the rules in their descriptors (types/v1/annotations.proto):
// ranges, lengths, formats, required fields, and no fields unknown to this version; and, for
// complete objects, relations between fields (relations.h). Requests are validated only here.
// Gateways check pushes with the same code. Any thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace rocegw::rules {

// Kind of a rule.
enum class Rule {
  kForm,
  kRoom,  // more than another field of the object allows
};

struct Violation {
  std::string field;  // "pool.spec.slots", "pool.spec.addresses[2]"
  std::string text;   // "must be at most 1024, is 5000"
  Rule rule = Rule::kForm;
  bool operator==(const Violation&) const = default;
};

// Returns all violations, in the order of the message's fields. A request with an update mask has
// parts of an object: the merged object must be checked again.
std::vector<Violation> Check(const google::protobuf::Message& message);

// Clears fields that only the controller writes, at any depth.
void ClearOutputOnly(google::protobuf::Message& message);

// Returns immutable fields that differ between two messages of one type.
std::vector<Violation> CheckImmutable(const google::protobuf::Message& before,
                                      const google::protobuf::Message& after);

// Returns fields that differ between two messages of one type and whose change needs a permission.
struct GuardedChange {
  std::string field;  // "spec.memory.trusted"
  std::string permission;
};
std::vector<GuardedChange> GuardedChanges(const google::protobuf::Message& before,
                                          const google::protobuf::Message& after);

}  // namespace rocegw::rules
