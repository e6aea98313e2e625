// SPDX-License-Identifier: Apache-2.0
// Texts in answers. A controller passes on the answers of gateways as they are, and a gateway may
// be in other hands: what the program prints must not move the cursor or set the clipboard.
#pragma once

#include <google/protobuf/message.h>

namespace rocegw::cli {

// Applies ForeignLines to all strings of the message and of messages in it, but not to bytes.
void CleanStrings(google::protobuf::Message& message);

}  // namespace rocegw::cli
