// SPDX-License-Identifier: Apache-2.0
// Rules between fields of an object, in addition to those of single fields (check.h). Any thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "proto/rules/check.h"
#include "rocegw/types/v1/pool.pb.h"

namespace rocegw::rules {

// Adds violations in this message, without nested messages; single fields are valid. `prefix`: its
// path, empty at the top.
void CheckRelations(const google::protobuf::Message& message, const std::string& prefix,
                    std::vector<Violation>& violations);

// Returns the pool's committed amounts, including its reserve.
types::v1::Limits CommittedOf(const types::v1::PoolSpec& spec);

}  // namespace rocegw::rules
