// SPDX-License-Identifier: Apache-2.0
// A message as bytes that are the same whenever the message is, in this build: entries of maps
// stand in the order of their keys. For what is compared or hashed, not only read again. Any
// thread.
#pragma once

#include <google/protobuf/message_lite.h>

#include <string>

namespace rocegw::model {

std::string Serialized(const google::protobuf::MessageLite& message);

}  // namespace rocegw::model
