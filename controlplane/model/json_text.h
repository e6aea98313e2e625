// SPDX-License-Identifier: Apache-2.0
// Messages as JSON for the audit, in one line, as protobuf's own conversion writes it (but for the
// order in maps, which is that of the keys). That one describes every type anew each time it is
// called, which takes 50 us of a write; this asks the message. Pure; any thread.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace rocegw::model {

std::string JsonText(const google::protobuf::Message& message);

}  // namespace rocegw::model
