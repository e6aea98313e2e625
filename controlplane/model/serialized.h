// SPDX-License-Identifier: Apache-2.0
// Deterministic serialization within this build: equal messages give equal bytes, with map entries
// sorted by key. For bytes that are compared or hashed. Any thread.
#pragma once

#include <google/protobuf/message_lite.h>

#include <string>

namespace rocegw::model {

std::string Serialized(const google::protobuf::MessageLite& message);

}  // namespace rocegw::model
