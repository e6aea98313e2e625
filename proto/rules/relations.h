// SPDX-License-Identifier: Apache-2.0
// What fields of an object must be to each other, beside the rules that each has for itself
// (check.h). Any thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "proto/rules/check.h"
#include "rocegw/types/v1/pool.pb.h"

namespace rocegw::rules {

// Adds what is wrong in this message, not in those within it; its fields keep their own rules.
// prefix: its path, empty at the top.
void CheckRelations(const google::protobuf::Message& message, const std::string& prefix,
                    std::vector<Violation>& violations);

// What the pool must always be granted: its quota says so, and what it keeps ready is promised too.
types::v1::Limits CommittedOf(const types::v1::PoolSpec& spec);

}  // namespace rocegw::rules
