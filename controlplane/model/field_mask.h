// SPDX-License-Identifier: Apache-2.0
// Partial updates (AIP-134 and AIP-161): which fields of a message a request means to change. Any
// thread.
#pragma once

#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/message.h>

#include <vector>

#include "controlplane/model/check.h"

namespace rocegw::model {

// Copies the named fields from `from` to `to`, both of one type; a field that `from` does not have
// becomes empty. Paths name fields below "spec" and "meta.labels" only, since nothing else is the
// client's to write. An empty mask means "spec" and "meta.labels". Returns paths that name nothing
// or something else; then `to` is as it was.
std::vector<Violation> Merge(const google::protobuf::Message& from,
                             const google::protobuf::FieldMask& mask,
                             google::protobuf::Message& to);

}  // namespace rocegw::model
