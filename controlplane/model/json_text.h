// SPDX-License-Identifier: Apache-2.0
// JSON of messages for the audit, on one line, as protobuf's own conversion writes it (except for
// the order of maps, which is by key). That conversion builds a description of the type at each
// call, which takes 50 us of a write; this one uses reflection. Pure; any thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace rocegw::model {

std::string JsonText(const google::protobuf::Message& message);

}  // namespace rocegw::model
