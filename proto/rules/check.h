// SPDX-License-Identifier: Apache-2.0
// Checks messages from outside against the rules that their descriptors carry
// (types/v1/annotations.proto): ranges, lengths, formats, what must be given, and that nothing is
// said that this version does not know; and, where all of an object is there, what its fields must
// be to each other (relations.h). The one boundary at which requests are validated; behind it they
// are used. Gateways check what they are pushed with the same. Any thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

namespace rocegw::rules {

// What kind of rule it is.
enum class Rule {
  kForm,
  kRoom,  // it is more than the same object allows
};

struct Violation {
  std::string field;  // "pool.spec.slots", "pool.spec.addresses[2]"
  std::string text;   // "must be at most 1024, is 5000"
  Rule rule = Rule::kForm;
  bool operator==(const Violation&) const = default;
};

// All that is wrong, in the order of the message's fields. A request with an update mask brings
// parts of an object: what it becomes is to be checked again as a whole.
std::vector<Violation> Check(const google::protobuf::Message& message);

// Empties what only the controller writes, at any depth.
void ClearOutputOnly(google::protobuf::Message& message);

// Fields that may not change and differ between the two. Both are of one type.
std::vector<Violation> CheckImmutable(const google::protobuf::Message& before,
                                      const google::protobuf::Message& after);

// Fields that differ between the two, of one type, and whose rule asks for a permission.
struct GuardedChange {
  std::string field;  // "spec.memory.trusted"
  std::string permission;
};
std::vector<GuardedChange> GuardedChanges(const google::protobuf::Message& before,
                                          const google::protobuf::Message& after);

}  // namespace rocegw::rules
