// SPDX-License-Identifier: Apache-2.0
// Partial updates (AIP-134 and AIP-161): fields of a message that a request changes. Any thread.
#pragma once

#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/message.h>

#include <vector>

#include "controlplane/model/check.h"

namespace rocegw::model {

// Copies the named fields from `from` to `to`, both of one type; a field unset in `from` is
// cleared. Paths may name fields below "spec" and "meta.labels" only, since clients may write no
// others. An empty mask means "spec" and "meta.labels". Returns invalid paths; then `to` is
// unchanged.
std::vector<Violation> Merge(const google::protobuf::Message& from,
                             const google::protobuf::FieldMask& mask,
                             google::protobuf::Message& to);

}  // namespace rocegw::model
